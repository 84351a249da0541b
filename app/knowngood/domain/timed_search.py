"""Looking for a signature in what strangers wrote: with a limit of time, and letting other threads work meanwhile."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import regex

LIMIT_S = 1.0
"""How long one text may be looked through, in seconds of this process's processors."""

LINE_CHARACTERS = 400
"""Characters kept of a line that says what happened."""


@dataclass(frozen=True)
class Searched:
    """The result of a search, fit to be stored with the text that was searched.

    `of` is the key of what was searched, and where; `line` is the line that carries it, at most 400 characters (None:
    there is none). With `is_late` the result is not known: the search took longer than it may.
    """

    of: str
    line: str | None = None
    is_late: bool = False


def search(pattern: str, texts: Iterable[str], limit_s: float = LIMIT_S, of: str = "") -> Searched:
    """Look through the texts in their order until one carries the pattern. Never raises TimeoutError."""
    try:
        return Searched(of, next((line for text in texts if (line := _line(pattern, text, limit_s)) is not None), None))
    except TimeoutError:
        return Searched(of, is_late=True)


def _line(pattern: str, text: str, limit_s: float) -> str | None:
    match = _compiled(pattern).search(text, timeout=limit_s, concurrent=True)
    if match is None:
        return None
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    return text[start : end if end >= 0 else len(text)].strip()[:LINE_CHARACTERS]


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> "regex.Pattern[str]":
    return regex.compile(pattern)
