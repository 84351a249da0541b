"""One store, every door: where an issue came and went is the same sentence, whatever columns somebody asks for."""

import html
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from knowngood.catalogue.loader import read_catalogue
from knowngood.cli.output import out
from knowngood.domain.measuring.job import ArmSpec, JobSpec
from knowngood.domain.message import english
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.health.coverage import Coverage, Hygiene
from knowngood.store.engine import connect
from knowngood.web.urls import MATRIX
from tests.commands.given import Call
from tests.fixtures.databases import NewStore
from tests.given_toys import TOYS
from tests.make import HARDWARE, NOON
from tests.web import given
from tests.web.asking import client_of, page_at, shown

ISSUE = "toy-fixed-1"
SENTENCE = "fails up to 0.0.1, fixed after 0.0.1, by 0.0.3 (0.0.2 not run)"
DOUBT = "but upstream says that 9.9.9 is affected (toy#1, a comment, 2026-11-20; not measured here)"
NEEDLESS = "not needed from 0.0.3 on (9.9.9 not run), fixed after 0.0.1, by 0.0.3 (0.0.2 not run): "
PASSING = "torch-0.0.3+mini"  # a column that alone would read "passes on 0.0.3, the one measured"
TRACE = "RuntimeError: conflicting declaration 'int64_t tmp_acc0_arr [2]'\n"

CLAIM = """
[[claim]]
text = "Wrong on 9.9.9 too."
source = "toy#1, a comment"
dated = 2026-11-20
says = "affected"
about = "==9.9.9"
"""


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    folder = tmp_path / "catalogue"
    shutil.copytree(TOYS / ISSUE, folder / ISSUE)
    shutil.copy(TOYS / "builds.toml", folder)
    with (folder / ISSUE / "issue.toml").open("a") as file:
        file.write(CLAIM)
    return folder


@pytest.fixture
def address(catalogue: Path, new_store: NewStore) -> str:
    """Of a store in which the issue fails on the first release, passes on the third, and was not run on the second."""
    address = new_store()
    engine = connect(address)
    found = read_catalogue([catalogue])
    given.save(engine, found.issues, found.builds)
    measured = [build for build in found.builds if build.id in {"torch-0.0.1+mini", PASSING}]
    given.run(engine, given.Asked(measured, NOON, issues=found.issues), tell=outcome_of)
    engine.dispose()
    return address


def outcome_of(spec: JobSpec, arm: ArmSpec) -> Outcome:
    fails = spec.build.torch.startswith("0.0.1") and arm.arm == "baseline"
    return Outcome.MATCH if fails else Outcome.PASS


@pytest.fixture
def client(address: str) -> Iterator[TestClient]:
    engine = connect(address)
    yield client_of(engine)
    engine.dispose()


@pytest.fixture
def call(
    command: Call, address: str, catalogue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    settings = {
        "KNOWNGOOD_DATA_DIR": str(tmp_path / "data"),
        "KNOWNGOOD_CATALOGUE": str(catalogue),
        "KNOWNGOOD_SHIPPED": "false",
        "KNOWNGOOD_DATABASE_URL": address,
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(out, "width", 300)  # it has kept the width that stood in COLUMNS when it was made
    return partial(said, command)


def said(command: Call, *arguments: str) -> str:
    done = command(*arguments)
    assert done.code in {0, 1}, done.err
    return done.out


def test_the_terminal(call: Callable[..., str], tmp_path: Path) -> None:
    one = ("--issues", ISSUE, "--builds", PASSING, "--hardware", HARDWARE)
    (tmp_path / "trace.txt").write_text(TRACE)
    for arguments in (("matrix",), ("matrix", *one), ("run", *one)):
        assert SENTENCE in call(*arguments), arguments
    assert f"{SENTENCE}; {DOUBT}" in " ".join(call("explain", str(tmp_path / "trace.txt")).split())
    assert NEEDLESS in " ".join(call("hygiene").split())


def test_pages(client: TestClient) -> None:
    for query in ("", f"?builds={PASSING}", "?columns=measured", "?python=3.11", "?columns=all"):
        (group,) = page_at(client, f"{MATRIX}{query.replace('+', '%2B')}").groups
        assert english(group.rows[0].sentence).startswith(SENTENCE)
    ((pattern,),) = [one.rows for one in shown(client, "/coverage", Coverage).hardware]
    assert english(pattern.history) == SENTENCE
    (strip,) = page_at(client, f"/issues/{ISSUE}").strips
    assert english(strip["sentence"]) == f"{SENTENCE}; {DOUBT}"
    text = " ".join(html.unescape(client.get(f"/issues/{ISSUE}").text).split())
    assert SENTENCE in text
    (remark,) = shown(client, "/hygiene", Hygiene).remarks
    assert english(remark.sentence) == f"{NEEDLESS}aot_eager, dynamic, eager, max_autotune, patched; {DOUBT}"


def test_json(client: TestClient) -> None:
    (told,) = client.get(f"/api/v1/issues/{ISSUE}").json()["history"]
    assert (told["sentence"], told["beside"], told["measured"]) == (SENTENCE, [DOUBT], 2)
    assert told["spans"] == [
        {
            "first_bad": "0.0.1",
            "last_bad": "0.0.1",
            "does": "fails",
            "broke_in": None,
            "fixed_in": "(0.0.1, 0.0.3]",
            "before": [],
            "within": [],
            "after": [{"release": "0.0.2", "answer": "not_run"}],
        }
    ]
    (class_,) = client.get("/api/v1/coverage").json()["hardware"]
    assert [row["history"] for row in class_["rows"]] == [SENTENCE]
    (match,) = client.post("/api/v1/errors", json={"text": TRACE}).json()["matches"]
    assert match["history"] == {HARDWARE: f"{SENTENCE}; {DOUBT}"}


@pytest.mark.parametrize("asked", ["", f"&builds={PASSING}"], ids=["all columns", "one that passes"])
def test_exports(client: TestClient, asked: str) -> None:
    asked = asked.replace("+", "%2B")
    assert f"| {SENTENCE} |" in client.get(f"/api/v1/export/markdown?issues={ISSUE}{asked}").text.replace("\\", "")
    records = client.get(f"/api/v1/export/osv?issues={ISSUE}").json()["vulns"]
    (told,) = records[0]["affected"]
    assert told["database_specific"]["history"] == SENTENCE
    assert told["database_specific"]["beside"] == [DOUBT]
