"""`knowngood void`, `unvoid` and `push` as people call them: answers, sentences and exit codes."""

import gzip
import json
import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import pytest

from knowngood.domain.access import Actor, Scope
from knowngood.logging_setup import configure
from knowngood.share.store import export_bundle
from knowngood.store.engine import Engine, connect, reading, unit_of_work
from knowngood.store.queries import load_cells
from knowngood.store.tokens import revoke_token
from knowngood.web.auth.principal import AccessPolicy
from tests.serving import served
from tests.web import given
from tests.web.asking import app_over
from tests.web.given import CPU_MACHINE, NOW, make_token


class Done(NamedTuple):
    code: int
    out: str
    err: str


Call = Callable[..., Done]


@pytest.fixture
def call(filled: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Call) -> Call:
    """The real command line, in this process, over a store that is filled."""
    monkeypatch.setenv("KNOWNGOOD_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("KNOWNGOOD_DATABASE_URL", filled.url.render_as_string(hide_password=False))
    configure("text", "warning")  # the server that is pushed to stands in this process too, and logs its requests
    return command


@pytest.fixture
def filled(own_notebook: Engine) -> Engine:
    return own_notebook


def verdicts(engine: Engine) -> list[str]:
    with reading(engine) as s:
        return [cell.verdict.value for cell in load_cells(s)]


def test_a_rehearsal_says_what_would_change_and_the_deed_does_it(call: Call, filled: Engine) -> None:
    before = verdicts(filled)
    asked = ("--machine", CPU_MACHINE.digest, "--reason", "it overheats")
    told = call("void", *asked, "--dry-run")
    assert (told.code, verdicts(filled)) == (0, before)
    assert "would be voided" in told.out
    done = call("void", *asked)
    number = re.findall(r"voided, as void (\d+)", done.out)[0]  # PostgreSQL counts rehearsals too
    assert done.out.replace(f"voided, as void {number}", "would be voided") == told.out
    assert f"{given.MASK.id} {given.BAD.id} cpu-x86_64: affected -> not_run" in done.out
    assert verdicts(filled) != before
    (listed,) = json.loads(call("void", "--list", "--json").out)
    assert (listed["id"], listed["machine"], listed["reason"]) == (int(number), CPU_MACHINE.digest, "it overheats")
    back = call("unvoid", number, "--reason", "it does not")
    assert "voided no more" in back.out
    assert verdicts(filled) == before
    assert "ended by" in call("void", "--list").out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("void", "--reason", "so"), "say whose results"),
        (("void", "--machine", CPU_MACHINE.digest), "say why in one line"),
        (("void", "--machine", "0" * 32, "--reason", "so"), "no results of a machine"),
        (("void", "--token", "nobody", "--reason", "so"), "no token is or was called"),
        (("void", "--machine", CPU_MACHINE.digest, "--reason", "so", "--from", "soon"), "--from"),
        (("void", "--machine", CPU_MACHINE.digest, "--reason", "so", "--to", "2999-01-01"), "still to come"),
        (("unvoid", "5", "--reason", "so"), "void 5 is not here"),
    ],
)
def test_what_cannot_be_done_is_a_sentence_and_changes_nothing(
    call: Call, filled: Engine, arguments: tuple[str, ...], sentence: str
) -> None:
    before = verdicts(filled)
    done = call(*arguments)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert verdicts(filled) == before


# -- push --------------------------------------------------------------------------------------------------------------


def serving(engine: Engine, rules: AccessPolicy | None = None, port: int = 0) -> AbstractContextManager[str]:
    return served(app_over(engine, rules=rules), port=port)


@pytest.fixture
def bundle(filled: Engine, tmp_path: Path) -> Path:
    path = tmp_path / "results.jsonl.gz"
    with reading(filled) as s, path.open("wb") as out:
        export_bundle(s, out, now=NOW, origin="gpu-box")
    return path


@pytest.fixture
def server(migrated_sqlite: Path, tmp_path: Path) -> Iterator[Engine]:
    """The store of a server, with the catalogue and no results."""
    path = tmp_path / "server.db"
    shutil.copy(migrated_sqlite, path)
    engine = connect(f"sqlite:///{path}")
    given.save(engine, given.ISSUES, given.BUILDS)
    yield engine
    engine.dispose()


@pytest.fixture
def token(server: Engine, tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(make_token(server, Scope.SUBMIT, name="gpu-host-1") + "\n")
    return file


def test_a_bundle_is_pushed_once_however_often_it_is_asked_for(
    call: Call, server: Engine, token: Path, bundle: Path
) -> None:
    with serving(server) as address:
        first = call("push", str(bundle), "--server", address, "--token-file", str(token))
        again = call("push", str(bundle), "--server", address, "--token-file", str(token))
    assert first.code == again.code == 0, first.err
    added = int(first.out.partition(": ")[2].partition(" ")[0])
    assert added > 10
    assert again.out == f"{bundle.name}: 0 attempts added, {added} were there already, 0 cells changed\n"


def test_a_server_that_comes_up_late_or_is_busy_gets_it_all_the_same(
    call: Call, server: Engine, token: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knowngood.share.cli._FIRST_WAIT_S", 0.2)
    busy = socket.create_server(("127.0.0.1", 0))
    port = busy.getsockname()[1]
    up = threading.Event()

    def come_up() -> None:
        """Once somebody was sent away."""
        with busy:
            busy.accept()[0].close()
        with serving(server, port=port):
            up.wait()

    later = threading.Thread(target=come_up)
    later.start()
    done = call(
        "push", str(bundle), "--server", f"http://127.0.0.1:{port}", "--token-file", str(token), "--tries", "20"
    )
    up.set()
    later.join()
    assert done.code == 0, done.err
    assert "does not take it now; again in" in done.err


@pytest.mark.parametrize(
    "what", ["revoked", "damaged", "too large", "nobody there", "no token", "no file", "a bad address"]
)
def test_what_is_not_taken_is_said_and_ends_in_a_code(
    call: Call, server: Engine, token: Path, bundle: Path, what: str
) -> None:
    code, sentence, tries = 4, "", ("--tries", "1")
    rules = AccessPolicy(results_limit=1000) if what == "too large" else None
    with serving(server, rules) as address:
        asked = address
        if what == "revoked":
            sentence = "lets nobody in without the right KNOWNGOOD_TOKEN"
            with unit_of_work(server) as s:
                revoke_token(s, "gpu-host-1", by=Actor("ops"), now=NOW)
        elif what == "damaged":
            sentence = "checksum"
            bundle.write_bytes(gzip.decompress(bundle.read_bytes()).replace(b"EPYC", b"EPIC"))
        elif what == "too large":
            sentence = "is larger than"
        elif what == "nobody there":
            asked, sentence = "http://127.0.0.1:9", "cannot be reached"
        elif what == "no token":
            token.write_text("\n")
            code, sentence = 2, "needs a token"
        elif what == "no file":
            bundle, sentence = bundle.with_name("none"), "cannot be read"
        else:
            asked, code, sentence = "knowngood.example.org", 2, "is no address"
        done = call("push", str(bundle), "--server", asked, "--token-file", str(token), *tries)
    assert (done.code, done.out) == (code, "")
    assert sentence in done.err
    assert token.read_text().strip() not in done.err or not token.read_text().strip()
