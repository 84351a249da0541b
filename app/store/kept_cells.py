"""Cells kept in memory from one reading to the next, so that a page reads only what was written in between."""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from threading import Lock

import sqlalchemy as sa
from sqlalchemy.orm import Session

from app.domain.verdict import Cell
from app.store import evidence
from app.store.reads import load_generation
from app.store.tables import cells

CellsByIssue = Mapping[str, tuple[Cell, ...]]
"""All that is stored of one hardware class: by issue its cells, by build."""


@dataclass(frozen=True)
class _Kept:
    generation: int
    cells: CellsByIssue


class KeptCells:
    """What one process knows of the cells, for many threads.

    An issue's cells stay the very same tuple until one of them is written. Whoever makes something of them may keep it
    for as long as they do: to compare two tuples would take longer than to read them.
    """

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._lock = Lock()

    def load(self, s: Session, hardware: str) -> CellsByIssue:
        """As of the transaction that `s` is in. A store that went backwards is read anew."""
        generation = load_generation(s)
        with self._lock:
            before = self._kept.get(hardware)
        if before is not None and before.generation == generation:
            return before.cells
        if before is not None and before.generation > generation:
            before = None
        kept = _Kept(generation, _brought_up(s, hardware, before))
        with self._lock:
            self._kept[hardware] = kept
        return kept.cells


def _brought_up(s: Session, hardware: str, before: _Kept | None) -> CellsByIssue:
    """A cell that is gone leaves no trace but in the number of them; then all are read anew (as in `store.known`)."""
    if before is None:
        return _with(_load(s, hardware, since=None), {})
    found = _with(_load(s, hardware, since=before.generation), before.cells)
    query = sa.select(sa.func.count()).select_from(cells).where(cells.c.hardware == hardware)
    if sum(map(len, found.values())) == s.execute(query).scalar_one():
        return found
    return _with(_load(s, hardware, since=None), {})


def _load(s: Session, hardware: str, *, since: int | None) -> Mapping[str, list[Cell]]:
    query = sa.select(cells.c.doc).where(cells.c.hardware == hardware)
    if since is not None:
        query = query.where(cells.c.changed > since)
    found: dict[str, list[Cell]] = {}
    for doc in s.execute(query).scalars().all():  # row by row takes twice as long
        cell = evidence.parse_cell(doc)
        found.setdefault(cell.issue, []).append(cell)
    return found


def _with(written: Mapping[str, list[Cell]], before: CellsByIssue) -> CellsByIssue:
    """Sorted here, because PostgreSQL sorts text by its locale and SQLite by its bytes."""
    if not written:
        return before
    fresh = {
        issue: tuple(sorted(_by_build(before.get(issue, ()), some).values(), key=attrgetter("build")))
        for issue, some in written.items()
    }
    return {**before, **fresh}


def _by_build(before: tuple[Cell, ...], written: list[Cell]) -> dict[str, Cell]:
    return {cell.build: cell for cell in (*before, *written)}
