"""The matrix as it was known at a past moment.

What the store can honestly say: each attempt is kept with the time at which it was finished. So "known then" means what
all attempts finished by then say, judged by today's catalogue and rules. Evidence that came in later, in a bundle,
counts from when it was measured, because that is what is kept of it. What a page said at that moment may have differed
where a rule, a repro or a signature has changed since: older results of a changed repro do not count then either.
What people said of a cell (that it is void, say) counts from when they said it.
"""

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from knowngood.domain.errors import BadRequest
from knowngood.domain.hardware_classes import whole_class, with_isa_classes
from knowngood.domain.verdicts.verdict import Cell, CellKey
from knowngood.store.engine import Session
from knowngood.store.evidence.cells import derive_until
from knowngood.store.queries import load_cells
from knowngood.store.statements import among, place_of
from knowngood.store.tables import attempts, cells, notes

MOST_ATTEMPTS = 10_000
"""How many attempts one answer judges anew; more are refused: 2,476 of the shipped ones took 0.8 s of one core
(2026-11-21)."""


def load_cells_at(
    s: Session,
    at: datetime,
    *,
    issues: Collection[str] | None = None,
    builds: Collection[str] | None = None,
    hardware: Collection[str] | None = None,
) -> tuple[Cell, ...]:
    """Like `load_cells`, as known `at` that moment. For now, and wherever nothing was measured since, the same values.

    Only cells with a later attempt are derived anew. Raises BadRequest where that would take MOST_ATTEMPTS or more.
    """
    live = load_cells(s, issues=issues, builds=builds, hardware=hardware)
    classes = None if hardware is None else with_isa_classes(hardware)
    moved = _moved_since(s, at, among(*zip(place_of(cells), (issues, builds, classes), strict=True)))
    cost = sum(moved.values())
    if cost > MOST_ATTEMPTS:
        raise BadRequest(
            f"{cost:,} attempts would have to be judged anew, more than {MOST_ATTEMPTS:,}; "
            "ask for fewer issues, builds or hardware classes"
        )
    resting = {key._replace(hardware=whole_class(key.hardware)) for key in moved} - moved.keys()
    past = {cell.key: cell for cell in derive_until(s, {*resting, *(key for key, n in moved.items() if n)}, at)}
    found = (past.get(cell.key) if cell.key in moved or cell.key in resting else cell for cell in live)
    return tuple(cell for cell in found if cell is not None)


def _moved_since(s: Session, at: datetime, wanted: Collection[sa.ColumnElement[bool]]) -> dict[CellKey, int]:
    """Cells with an attempt or a note after `at`, with how many attempts they had then. Per cell a few looks into
    indexes, however long its history.
    """
    earlier = sa.select(sa.func.count()).where(_of_cell(attempts), attempts.c.finished_at <= at).scalar_subquery()
    measured = sa.select(attempts.c.id).where(_of_cell(attempts), attempts.c.finished_at > at).exists()
    said = sa.select(notes.c.id).where(_of_cell(notes), notes.c.at > at).exists()
    query = sa.select(*place_of(cells), earlier).where(sa.or_(measured, said), *wanted)
    return {CellKey(*place): n for *place, n in s.execute(query)}


def _of_cell(table: sa.Table) -> sa.ColumnElement[bool]:
    return sa.and_(*(table.c[name] == cells.c[name] for name in ("issue", "build", "hardware")))
