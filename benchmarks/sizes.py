"""How large a benchmark is: as measured, or as small as it goes, which shows that it still runs."""

import os
from typing import TypeVar

Value = TypeVar("Value")
IS_SMALLEST = bool(os.environ.get("KNOWNGOOD_BENCH_SMALLEST"))


def size(usual: Value, smallest: Value) -> Value:
    """What is set in the environment by a name of its own is the caller's, and goes into `usual`."""
    return smallest if IS_SMALLEST else usual
