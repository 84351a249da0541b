"""Rows that cannot be read: written by something else, or damaged. Whoever reads many leaves them out, and each is
logged once and counted (`knowngood_unreadable_rows_total`), so that it costs no more than itself.
"""

import logging
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from threading import Lock
from typing import TypeVar

from knowngood.domain.errors import Unreadable

logger = logging.getLogger(__name__)  # structlog takes 0.1 s to import, which a question of the gate need not pay

_Raw = TypeVar("_Raw")
_T = TypeVar("_T")

FAULTS = (ValueError, LookupError, TypeError, zlib.error)
"""Exceptions that parsing a damaged or foreign text ends in."""

_REMEMBERED = 10_000

_lock = Lock()
_met: Counter[str] = Counter()


def tell(table: str, row: str) -> None:
    """Say that this row cannot be read: once in a process, since some rows are read whenever the store moves."""
    with _lock:
        _tell(table, row)


@lru_cache(maxsize=_REMEMBERED)
def _tell(table: str, row: str) -> None:
    logger.warning("a stored row cannot be read and is left out", extra={"table": table, "row": row})
    _met[table] += 1


def take_met() -> Counter[str]:
    """The number of rows of each table that this process logged since the last call."""
    if not _met:
        return Counter()
    with _lock:
        met = _met.copy()
        _met.clear()
    return met


def readable(
    table: str, rows: Iterable[tuple[str, _Raw]], parse: Callable[[_Raw], _T], *, whole: bool = False
) -> Iterator[_T]:
    """The rows that can be read, of rows with their names; with `whole` all of them, or Unreadable is raised."""
    for row, raw in rows:
        try:
            value = parse(raw)
        except FAULTS as error:
            tell(table, row)
            if whole:
                raise Unreadable(_SENTENCE.format(_CALLED.get(table, table), row, table)) from error
        else:
            yield value


def read(table: str, row: str, parse: Callable[[_Raw], _T], raw: _Raw) -> _T:
    """Read one row. Raises Unreadable."""
    return next(readable(table, [(row, raw)], parse, whole=True))


_CALLED = {"issues": "issue", "builds": "build", "attempts": "attempt", "watch_list_versions": "watch list"}
_SENTENCE = (
    'the {} "{}" is stored in a form that cannot be read (table {}); '
    "issues and builds are written anew when the server is started, all else comes back with a copy of the database"
)
