"""`knowngood backup` and `knowngood restore` as people use them, and the move from one database to the other."""

import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from knowngood.app.store.engine import Engine, connect, unit_of_work
from knowngood.app.store.tables import logs
from tests.fixtures.databases import NewStore
from tests.forked_commands import run_command
from tests.web.given import fill

Done = subprocess.CompletedProcess[str]
Call = Callable[..., Done]


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """The real command in a process of its own, over a store of `url`; over its own file without one."""

    def calling(*arguments: str, url: str = "") -> Done:
        environment = {**os.environ, "KNOWNGOOD_DATA_DIR": str(tmp_path / "data"), "KNOWNGOOD_DATABASE_URL": url}
        return run_command(arguments, environment, timeout_s=300)

    return calling


@pytest.fixture(scope="module")
def notebook(store_on: NewStore) -> str:
    address: str = store_on("sqlite")
    engine = connect(address)
    fill(engine)
    engine.dispose()
    return address


def done(told: Done) -> str:
    assert told.returncode == 0, told.stderr
    return told.stdout


@pytest.mark.system
@pytest.mark.timeout(600)
def test_the_shipped_evidence_reads_the_same_after_a_move_to_postgresql_and_back(
    call: Call, shipped: Engine, empty_postgres_url: str, tmp_path: Path
) -> None:
    """`matrix --json`, byte for byte."""
    here = shipped.url.render_as_string(hide_password=False)
    back = f"sqlite:///{tmp_path / 'back.sqlite3'}"
    every = ("matrix", "--builds", "all", "--issues", "all", "--json")
    first = done(call(*every, url=here))
    assert json.loads(first)["cells"], "an empty matrix would prove nothing"
    assert "every table read again and found equal" in _moved(call, here, empty_postgres_url, tmp_path / "one.backup")
    assert done(call(*every, url=empty_postgres_url)) == first
    _moved(call, empty_postgres_url, back, tmp_path / "two.backup")
    assert done(call(*every, url=back)) == first


def _moved(call: Call, source: str, target: str, path: Path) -> str:
    done(call("backup", "-o", str(path), url=source))
    return done(call("restore", str(path), "--into", target))


def test_a_backup_is_for_its_owner_alone_and_takes_the_place_of_the_last_one(
    call: Call, notebook: str, tmp_path: Path
) -> None:
    path = tmp_path / "night.backup"
    path.write_text("of yesterday")
    path.chmod(0o644)
    said = done(call("backup", "-o", str(path), url=notebook))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert f"{path}: " in said
    assert f"{path.stat().st_size:,} bytes" in said
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_backup_says_what_it_holds_before_anything_is_restored(call: Call, notebook: str, tmp_path: Path) -> None:
    path = tmp_path / "night.backup"
    written = json.loads(done(call("backup", "-o", str(path), "--json", url=notebook)))
    held = json.loads(done(call("restore", str(path), "--check", "--json")))
    assert held == written
    assert held["header"]["database"] == "sqlite"
    assert held["tables"]["attempts"]["rows"] > 0
    assert len(held["tables"]["attempts"]["sha256"]) == 64
    assert "night.backup is whole: " in done(call("restore", str(path), "--check"))
    assert not (tmp_path / "data").exists(), "nothing was touched"


def test_without_an_address_the_store_of_the_settings_is_restored(call: Call, notebook: str, tmp_path: Path) -> None:
    path = tmp_path / "night.backup"
    done(call("backup", "-o", str(path), url=notebook))
    done(call("restore", str(path)))
    assert (tmp_path / "data" / "knowngood.sqlite3").exists()
    refused = call("restore", str(path))
    assert (refused.returncode, "is not empty: it holds" in refused.stderr) == (4, True)
    done(call("restore", str(path), "--force"))


def test_what_was_made_since_is_gone_after_a_restore_by_force(call: Call, notebook: str, tmp_path: Path) -> None:
    path = tmp_path / "night.backup"
    done(call("backup", "-o", str(path), url=notebook))
    done(call("restore", str(path)))
    engine = connect(f"sqlite:///{tmp_path}/data/knowngood.sqlite3")
    with unit_of_work(engine) as s:
        s.execute(sa.insert(logs).values(digest="since", zlib=b""))
    done(call("restore", str(path), "--force"))
    with unit_of_work(engine) as s:
        assert s.execute(sa.select(logs.c.digest).where(logs.c.digest == "since")).all() == []
    engine.dispose()


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        pytest.param(
            ["backup", "-o", "/nowhere/at/all"], 2, "/nowhere/at/all cannot be written: No such file", id="no folder"
        ),
        pytest.param(["restore", "README.md"], 4, "README.md is damaged or no backup", id="another file"),
        pytest.param(
            ["restore", "repros/evidence/cpu-2026-11-22.jsonl.gz"], 4, "bundles of results are for", id="a bundle"
        ),
        pytest.param(["restore", "README.md", "--into", "mysql://x/y"], 4, "", id="another database"),
    ],
)
def test_what_cannot_be_done_ends_in_a_sentence(
    call: Call, notebook: str, arguments: list[str], code: int, sentence: str
) -> None:
    refused = call(*arguments, url=notebook)
    assert refused.returncode == code
    assert sentence in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_store_that_was_never_made_has_nothing_to_back_up(call: Call, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    refused = call("backup", "-o", str(tmp_path / "night.backup"))
    assert (refused.returncode, "there is nothing to back up" in refused.stderr) == (4, True)
    assert not (tmp_path / "night.backup").exists()
    assert not list(tmp_path.glob("*.partial"))
