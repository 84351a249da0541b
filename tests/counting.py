"""The work of a call, counted without a clock."""

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_steps(work: Callable[[], object]) -> int:
    """Lines of Python that run, and calls; a loop on one line counts each time round."""
    steps = 0

    def count(_frame: FrameType, _event: str, _value: Any) -> Any:
        nonlocal steps
        steps += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps


def peak_bytes(work: Callable[[], object]) -> int:
    """The most that is held at once on top of what was held before; of two calls, the lesser.

    The process has one cache of sentences, which grows by 295 KB with the 5,462nd of them, whatever work tells it.
    """
    return min(_traced(work) for _ in range(2))


def _traced(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
