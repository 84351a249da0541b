"""`knowngood explain` as people call it: answers, sentences and exit codes."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from app.__main__ import main
from app.store.session import connect, migrate
from tests.web.given import BAD, LINE, fill


class Done(NamedTuple):
    code: int
    out: str
    err: str


Call = Callable[..., Done]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    address = f"sqlite:///{tmp_path_factory.mktemp('explain')}/notebook.db"
    engine = connect(address)
    migrate(engine)
    fill(engine)
    engine.dispose()
    return address


@pytest.fixture
def call(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """The real command line, in this process, over the filled notebook."""
    monkeypatch.setenv("KNOWNGOOD_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("KNOWNGOOD_DATABASE_URL", database)

    def calling(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["knowngood", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        return Done(int(ended.value.code or 0), told.out, told.err)

    return calling


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "log.txt"
    path.write_text(f"\x1b[31m[rank0]: {LINE}\x1b[0m\r\nPyTorch version: 2.7.1+cu126\r\n")
    return path


def test_a_known_failure_ends_0_with_the_cure_for_the_build(call: Call, report: Path) -> None:
    done = call("explain", str(report))
    assert done.code == 0
    assert done.out.startswith("We know this one: ")
    assert f"Build: {BAD.id}" in done.out
    assert f"workarounds as measured on {BAD.id} (cpu-x86_64):" in done.out
    assert "    effective: Make it eagerly\n      ```python\n      mask = make()" in done.out
    assert f"> 1: {LINE}" in done.out


def test_json_is_what_the_api_answers(call: Call, report: Path) -> None:
    done = call("explain", str(report), "--json")
    body = json.loads(done.out)
    assert (done.code, body["known"], body["build"]) == (0, True, BAD.id)


def test_an_unknown_failure_ends_3_and_says_how_to_add_it(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"KeyError: 'x'\xff\x00")))
    done = call("explain", "-")
    assert done.code == 3
    assert "We do not know this one." in done.out
    assert "knowngood new-issue" in done.out


def test_the_build_can_be_said(call: Call, report: Path) -> None:
    assert "Build: torch-2.8.0+cu128" in call("explain", str(report), "--build", "torch-2.8.0+cu128").out


def test_what_cannot_be_read_ends_2_with_a_sentence(call: Call, report: Path, tmp_path: Path) -> None:
    missing = call("explain", str(tmp_path / "nothing.txt"))
    assert (missing.code, missing.out) == (2, "")
    assert "nothing.txt cannot be read: No such file or directory" in missing.err
    assert call("explain", str(tmp_path)).code == 2
    assert call("explain", str(report), "--build", "pytorch").code == 2


def test_a_file_far_too_large_is_refused(call: Call, tmp_path: Path) -> None:
    huge = tmp_path / "huge.log"
    with huge.open("wb") as file:
        file.truncate((64 << 20) + 1)
    done = call("explain", str(huge))
    assert done.code == 2
    assert "larger than 64 MiB" in done.err


def test_the_exit_codes_stand_in_its_help(call: Call) -> None:
    text = " ".join(call("explain", "--help").out.split())
    assert "Ends 0 where an issue is recognised, 3 where none is surely" in text
