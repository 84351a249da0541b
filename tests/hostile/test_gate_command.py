"""Commands that read a file of a pull request end in time, with a sentence or with an answer."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.hostile.shapes import CRITICAL, OTHERS, Made, Maker

pytestmark = pytest.mark.system

PATIENCE_S = 120
_ANSWERS = {0, 1, 3}


def inline_tables(size: int = 3_900_000) -> Made:
    """A lock whose only value is a list of small tables: as large as an environment may be, and nothing is wrong."""
    return "uv.lock", b"version = 1\nx = [\n" + b"{a=1},\n" * (size // 7) + b"]\n"


def _run(arguments: list[str], folder: Path, settings: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "knowngood", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "KNOWNGOOD_DATA_DIR": str(folder / "data"), **settings},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def _require_end(done: subprocess.CompletedProcess[str]) -> None:
    assert "Traceback" not in done.stderr
    assert done.returncode in {*_ANSWERS, 2}, done.stderr
    if done.returncode == 2:
        assert re.fullmatch(r"\S.*\n+", done.stderr, re.DOTALL), done.stderr
        assert len(done.stderr) < 2_000


@pytest.mark.timeout(3 * PATIENCE_S)
@pytest.mark.parametrize(
    "make",
    [*CRITICAL, *(pytest.param(one, marks=pytest.mark.soak) for one in OTHERS)],
    ids=lambda make: make.__name__,
)
def test_a_command_ends_with_an_answer_or_with_one_sentence(make: Maker, tmp_path: Path) -> None:
    name, content = make()
    file = tmp_path / (name or "pasted.txt")
    file.write_bytes(content)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    commands = [["explain", str(file)]]
    if name != "log":
        commands += [["gate", "-r", str(file), "--issues", "pytorch-151290"], ["env", "-r", str(file)]]
    for command in commands:
        _require_end(_run(command, folder, {}))


@pytest.mark.timeout(PATIENCE_S)
def test_what_is_beyond_a_limit_is_refused_with_the_limit(tmp_path: Path) -> None:
    name, content = inline_tables()
    file = tmp_path / name
    file.write_bytes(content)
    done = _run(["gate", "-r", str(file), "--issues", "pytorch-151290"], tmp_path, {})
    assert done.returncode == 2, done.stderr
    assert "takes more than" in done.stderr or "its reader was ended" in done.stderr
