"""Asked to stop: how commands that go on for long hear of it."""

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

logger = structlog.get_logger(__name__)

_asked: list[threading.Event] = []


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM ask to stop; a second one insists. Within another block they ask that one too."""
    stopping = threading.Event()
    _asked.append(stopping)

    def ask(number: int, _frame: object) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        for event in _asked:
            event.set()
        if sys.stderr.isatty():
            sys.stderr.write("\nstopping; once more to insist\n")
        else:
            logger.warning("stopping; once more to insist", signal=signal.Signals(number).name)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopping.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _asked.remove(stopping)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """After so many seconds ask the `stoppable` blocks within this one to stop, and none around it."""
    around = len(_asked)

    def ask() -> None:
        for event in _asked[around:]:
            event.set()

    timer = threading.Timer(seconds, ask)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def wait(until: Callable[[], bool], *, at_most_s: float = math.inf) -> None:
    ends = time.monotonic() + at_most_s
    while not until() and time.monotonic() < ends:
        time.sleep(0.2)
