"""`knowngood explain` as people call it: answers, sentences and exit codes."""

import io
import json
import sys
from pathlib import Path

import pytest

from knowngood.cli.encoding import SCREEN
from tests.commands.given import Call
from tests.web.given import BAD, GPU_ONLY, LINE, MASK


@pytest.fixture
def call(call_notebook: Call) -> Call:
    return call_notebook


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "log.txt"
    path.write_text(f"\x1b[31m[rank0]: {LINE}\x1b[0m\r\nPyTorch version: 2.7.1+cu126\r\n")
    return path


def test_a_known_failure_ends_0_with_the_cure_for_the_build(call: Call, report: Path) -> None:
    done = call("explain", str(report))
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].startswith(f"This is {GPU_ONLY.id}: "), "nothing helps with the one that the text is most alike"
    assert f"Or {MASK.id}: {MASK.title}.\n        mask = make()\n" in done.out
    assert "```" not in done.out
    assert f"Recognised by line 1: {LINE[:40]}" in " ".join(done.out.split())
    assert f"More: knowngood issue {GPU_ONLY.id} --build {BAD.id}" in lines
    assert len(lines) <= SCREEN


def test_json_is_what_the_api_answers(call: Call, report: Path) -> None:
    done = call("explain", str(report), "--json")
    body = json.loads(done.out)
    assert (done.code, body["known"], body["build"]) == (0, True, BAD.id)


def test_a_message_of_an_installation_ends_0_with_one_command_and_its_source(call: Call, report: Path) -> None:
    report.write_text("ImportError: x.so: undefined symbol: _ZN3c105ErrorC1ENS_14SourceLocationE\n")
    done = call("explain", str(report))
    assert (done.code, done.out.startswith("The compiled extension was built for another torch")) == (
        0,
        True,
    )
    assert '    python -c "import torch; print(torch.__version__' in done.out
    assert "; not run here" in done.out
    assert "Nearest by words" not in done.out


def test_a_symbol_of_torchs_is_said_with_the_releases_that_export_it(call: Call, report: Path) -> None:
    report.write_text("ImportError: x.so: undefined symbol: _ZN3c104cuda9SetDeviceEi\nPyTorch version: 2.3.0+cu121\n")
    done = call("explain", str(report))
    told = " ".join(done.out.split())
    assert "c10::cuda::SetDevice(int): exported by torch 2.1.0 to 2.2.2, not by 2.3.0 to " in told
    assert "; torch 2.3.0, which the text states, does not export it (read in the default Linux x86-64" in told
    assert '\n    pip install "torch==2.2.2"   # else the package' in done.out
    (meaning,) = json.loads(call("explain", str(report), "--json").out)["meanings"]
    assert (meaning["symbol"], meaning["exports"][:18]) == ("c10::cuda::SetDevice(int)", "exported by torch ")


def test_an_unknown_failure_ends_3_and_says_how_to_add_it(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"KeyError: 'x'\xff")))
    done = call("explain", "-")
    assert done.code == 3
    assert "Not known here: " in done.out
    assert "knowngood new-issue" in done.out


def test_the_build_can_be_said(call: Call, report: Path) -> None:
    done = call("explain", str(report), "--build", "torch-2.8.0+cu128")
    assert "--build torch-2.8.0+cu128\n" in done.out


def test_what_cannot_be_read_ends_2_with_a_sentence(call: Call, report: Path, tmp_path: Path) -> None:
    missing = call("explain", str(tmp_path / "nothing.txt"))
    assert (missing.code, missing.out) == (2, "")
    assert "nothing.txt cannot be read: No such file or directory" in missing.err
    assert call("explain", str(tmp_path)).code == 2
    assert call("explain", str(report), "--build", "pytorch").code == 2


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"", "is empty"), (b" \n", "is empty"), (b"\x7fELF\x00\x01", "NUL byte"), ("x".encode("utf-16"), "PowerShell")],
)
def test_what_is_no_text_ends_2(call: Call, tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "a.log").write_bytes(content)
    done = call("explain", str(tmp_path / "a.log"))
    assert (done.code, done.out) == (2, "")
    assert why in done.err


def test_a_file_far_too_large_is_refused(call: Call, tmp_path: Path) -> None:
    huge = tmp_path / "huge.log"
    with huge.open("wb") as file:
        file.truncate((64 << 20) + 1)
    done = call("explain", str(huge))
    assert done.code == 2
    assert "larger than 64 MiB" in done.err


def test_the_exit_codes_stand_in_its_help(call: Call) -> None:
    text = " ".join(call("explain", "--help").out.split())
    assert "Exit codes: 0 it recognises an issue, or a known installation error; 3 it recognises none for sure" in text
