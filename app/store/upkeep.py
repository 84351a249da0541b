"""Keeping the store right and small: deriving every verdict anew, and removing what nothing counts on any more."""

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session

from app.store.cells import CellKey, announce, rederive, touch
from app.store.rows import CellChange, PruneReport
from app.store.tables import attempts, cells, environments, events, locks, logs, machines, runs


def reclassify(s: Session, now: datetime) -> tuple[CellChange, ...]:
    """Derive every cell from its evidence with this release's rules, store what differs, and tell it.

    Right after a run it finds nothing: cells are kept up to date as evidence comes in.
    """
    touch(s)
    places = sa.union(
        sa.select(attempts.c.issue, attempts.c.build, attempts.c.hardware),
        sa.select(cells.c.issue, cells.c.build, cells.c.hardware),
    )
    changes = rederive(s, [CellKey(*row) for row in s.execute(places)], now)
    announce(s, "reclassified", now, changed=len(changes))
    return changes


def prune(s: Session, now: datetime, *, superseded_days: float, history_days: float) -> PruneReport:
    """Remove superseded attempts older than `superseded_days`, events and ended runs older than `history_days`, and
    logs, locks and machines that no attempt refers to any more. What counts is never removed, however old.
    """
    touch(s)
    old = now - timedelta(days=superseded_days)
    aged = now - timedelta(days=history_days)
    gone = sa.and_(attempts.c.counts_as.is_(None), attempts.c.finished_at < old)
    places = [
        CellKey(*row)
        for row in s.execute(sa.select(attempts.c.issue, attempts.c.build, attempts.c.hardware).where(gone).distinct())
    ]
    removed = _delete(s, attempts, gone)
    rederive(s, places, now)
    return PruneReport(
        attempts=removed,
        logs=_delete(s, logs, _unreferred(logs.c.digest, attempts.c.log_digest)),
        locks=_delete(s, locks, _unreferred(locks.c.digest, attempts.c.lock_digest))
        + _delete(s, environments, _unreferred(environments.c.lock_digest, attempts.c.lock_digest)),
        machines=_delete(s, machines, _unreferred(machines.c.digest, attempts.c.machine)),
        events=_delete(s, events, events.c.at < aged),
        runs=_delete(s, runs, sa.and_(runs.c.finished_at.is_not(None), runs.c.finished_at < aged)),
    )


def _unreferred(key: sa.Column[str], by: sa.Column[str]) -> sa.ColumnElement[bool]:
    return ~sa.exists().where(by == key)


def _delete(s: Session, table: sa.Table, which: sa.ColumnElement[bool]) -> int:
    key = next(iter(table.primary_key.columns))
    return len(s.execute(sa.delete(table).where(which).returning(key)).scalars().all())
