"""Asked to stop: how commands that go on for long hear of it."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

logger = structlog.get_logger(__name__)


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM ask to stop; a second one insists."""
    stopping = threading.Event()

    def ask(number: int, _frame: object) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()
        logger.warning("stopping; once more to insist", signal=signal.Signals(number).name)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopping.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def wait(until: Callable[[], bool]) -> None:
    while not until():
        time.sleep(0.2)
