"""The door for foreign text: its limits, for a command that forks and for a server that keeps a template."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from pathlib import Path

import pytest

from knowngood import foreign_text
from knowngood.domain.errors import BadEnvironment, Busy, TextTooCostly
from knowngood.domain.message import Message
from knowngood.environments.service import stated_in
from knowngood.environments.source import in_file
from tests.waiting import eventually


def spin() -> None:
    while True:
        pass


def backtrack() -> None:
    """Holds the interpreter in C code, where no handler of a signal is called."""
    re.match(r"(a+)+b", "a" * 60)


def swell() -> int:
    return len([0] * 10**9)


def say_much() -> str:
    return "x" * (foreign_text.RESULT_BYTES + 1)


def wait_at(gate: Path) -> None:
    gate.open("rb").close()  # until somebody opens its other end


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refuse() -> None:
    raise BadEnvironment(in_file("requirements.txt", Message("file_empty"), 1))


def first_of(shared: list[int], other: int) -> tuple[int, int]:
    return shared[0], other


LIMITS: list[tuple[Callable[[], object], str]] = [
    (spin, "more than 2 s of a processor"),
    (backtrack, "more than 2 s of a processor"),
    (swell, "more than 300 MB of memory"),
    (say_much, "more than 32 MB"),
    (die, "could not be read"),
]


@pytest.fixture
def _server() -> Iterator[None]:
    """Another thread, as a server has."""
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    yield
    ended.set()
    other.join()


@pytest.mark.parametrize(("reader", "sentence"), LIMITS)
@pytest.mark.usefixtures("_server")
def test_what_takes_more_than_it_may_is_refused_with_the_limit_and_the_next_text_is_read(
    reader: Callable[[], object], sentence: str
) -> None:
    began = time.monotonic()
    with pytest.raises(TextTooCostly, match=sentence):
        foreign_text.read(reader)
    assert time.monotonic() - began < foreign_text.WAIT_S, "it was waited for, though it was gone"
    assert stated_in(b"torch==2.6.0\n", "requirements.txt").kind == "requirements.txt"


@pytest.mark.usefixtures("_server")
def test_what_a_reader_refuses_is_refused_in_its_own_words() -> None:
    with pytest.raises(BadEnvironment, match=r"line 1: is empty; give"):
        foreign_text.read(refuse)


@pytest.mark.usefixtures("_server")
def test_what_is_shared_is_the_first_argument_and_the_newest_one() -> None:
    for shared in ([1], [2]):
        assert foreign_text.read(first_of, 5, shared=shared) == (shared[0], 5)


@pytest.mark.system
def test_a_command_which_has_one_thread_has_the_same_limits(tmp_path: Path) -> None:
    program = tmp_path / "command.py"
    program.write_text(
        f"import sys, threading\nsys.path[:] = {sys.path!r}\n"
        "from knowngood import foreign_text\nfrom tests.test_foreign_text import LIMITS, first_of\n"
        "assert threading.active_count() == 1\n"
        "for reader, _ in LIMITS:\n    try:\n        foreign_text.read(reader)\n"
        "    except Exception as error:\n        print(type(error).__name__, error)\n"
        "print(foreign_text.read(first_of, 5, shared=[1]))\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    *refused, read = done.stdout.splitlines()
    assert [
        f"TextTooCostly the text {sentence}" in line.replace(" takes ", " ").replace(" says ", " ")
        for (_, sentence), line in zip(LIMITS, refused, strict=True)
    ] == [True] * len(LIMITS)
    assert read == "(1, 5)"


def test_many_at_once_are_read_or_refused_and_none_waits_for_ever(tmp_path: Path) -> None:
    gate, places = tmp_path / "gate", foreign_text.AT_ONCE + foreign_text.WAITING
    os.mkfifo(gate)
    with ThreadPoolExecutor(40) as pool:
        asked = [pool.submit(foreign_text.read, wait_at, gate) for _ in range(40)]
        refused = {type(one.exception()) for one in islice(as_completed(asked), 40 - places)}
        with gate.open("r+b", buffering=0):
            ended = {type(one.exception()) for one in asked}
    assert refused == {Busy}
    assert {type(None), Busy} <= ended <= {type(None), Busy, TextTooCostly}


def test_a_template_that_was_killed_is_started_again_and_ends_with_its_server(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(
        "import threading, time, os, signal\n"
        "from knowngood import foreign_text\n"
        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        "foreign_text.is_ready()\n"
        "os.kill(foreign_text._template._process.pid, signal.SIGKILL)\n"
        "foreign_text._template._process.wait()\n"
        "foreign_text.is_ready()\n"
        "print(foreign_text._template._process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        template = int(server.stdout.readline())
        server.kill()
    told = Path(f"/proc/{template}/stat")
    assert eventually(lambda: not told.exists() or " Z " in told.read_text()), "the template outlived its server"
