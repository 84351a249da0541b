"""Waiting for what must come to pass: as long as the slowest machine takes, and no longer than it takes here."""

import time
from collections.abc import Callable

PATIENCE_S = 120.0
"""On a machine that does fifteen other things at once, too. What may take longer brings its own."""


def eventually(is_so: Callable[[], bool], seconds: float = PATIENCE_S) -> bool:
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True
