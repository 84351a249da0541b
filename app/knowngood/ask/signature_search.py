"""The search for signatures in a stranger's text, which takes no longer than it may. Pure."""

from collections.abc import Callable

import regex


class SearchBudget:
    """How long all signatures together may be looked for, and one of them at most. Seconds of `clock`.

    The clock is looked at now and then: a pattern that was to end after 0.2 s ended after one second. With the shipped
    signatures a megabyte written to be slow takes 0.8 s, a log of that size 0.12 s (one shared core, 2026-11-21).
    """

    def __init__(self, clock: Callable[[], float], whole_s: float = 2.0, each_s: float = 0.5) -> None:
        self._clock = clock
        self._until = clock() + whole_s
        self._each_s = each_s

    def search(self, pattern: str, text: str, start: int = 0, end: int | None = None) -> "regex.Match[str] | None":
        """Search as `re.search` does. Raises TimeoutError."""
        left = min(self._each_s, self._until - self._clock())
        if left <= 0:
            raise TimeoutError
        return regex.search(pattern, text, pos=start, endpos=end, timeout=left, concurrent=True)
