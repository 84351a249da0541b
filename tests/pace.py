"""What work costs in loops of plain Python that are timed beside it: seconds differ by machine, and by its load."""

import time
from collections.abc import Callable

_ROUNDS = 200_000  # 11 ms of a quiet core
_LOOKS = 3


def loop_s() -> float:
    """Seconds of a processor that a loop takes here and now, the best of three."""
    return min(_seconds_of(_loop) for _ in range(_LOOKS))


def cost(work: Callable[[], object], most: float) -> float:
    """How many loops work takes of this process's processors: of three tries the best, or the first below `most`."""
    for _ in range(_LOOKS - 1):
        if (found := _seconds_of(work) / loop_s()) < most:
            return found
    return _seconds_of(work) / loop_s()


def _loop() -> None:
    total = 0
    for number in range(_ROUNDS):
        total += number


def _seconds_of(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
