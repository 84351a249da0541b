"""Turns among all processes of a host, each tested with real processes."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from knowngood_workers.common.host_lock import turn

HOLD = """
import sys, tempfile, time
tempfile.tempdir = sys.argv[1]
from knowngood_workers.common.host_lock import turn
with turn("toys", 2, lambda: None):
    print("in", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _own_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def holder(folder: Path) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"in\n"
    return process


class Impatient(Exception):
    """It was not its turn."""


def test_only_so_many_have_a_turn_and_the_dead_give_theirs_back(tmp_path: Path) -> None:
    def complain() -> None:
        raise Impatient

    holders = [holder(tmp_path), holder(tmp_path)]
    try:
        with pytest.raises(Impatient), turn("toys", 2, complain):
            pass
        with turn("others", 2, complain):
            pass
        holders[0].kill()
        holders[0].wait()
        with turn("toys", 2, complain), pytest.raises(Impatient), turn("toys", 2, complain):
            pass
    finally:
        for process in holders:
            process.kill()
            process.communicate()


def test_whoever_waits_comes_in_once_another_is_through(tmp_path: Path) -> None:
    first, second = holder(tmp_path), holder(tmp_path)
    looks: list[float] = []

    def look() -> None:
        looks.append(time.monotonic())
        if len(looks) == 2:
            second.kill()

    try:
        with turn("toys", 2, look):
            assert len(looks) >= 2
    finally:
        for process in (first, second):
            process.kill()
            process.communicate()


def test_a_host_that_cannot_be_locked_sets_no_limit(tmp_path: Path) -> None:
    (tmp_path / "knowngood-toys").write_text("a file where the folder should be")
    with turn("toys", 1, lambda: None), turn("toys", 1, lambda: None):
        pass
