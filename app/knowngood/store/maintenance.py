"""Keeping the store right and small: deriving every verdict anew, and removing what nothing counts on any more."""

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from knowngood.domain.verdicts.verdict import RULES, CellKey
from knowngood.store import counters
from knowngood.store.engine import Session, is_of_older_rules
from knowngood.store.evidence.cells import CHANGED, announce, rederive, touch
from knowngood.store.jobs.durations import ENVIRONMENT_READY
from knowngood.store.records import CellChange, JobState, Removed
from knowngood.store.statements import pieces, place_of
from knowngood.store.tables import (
    RULES_IN_META,
    Json,
    arms,
    attempts,
    builds,
    cells,
    environments,
    events,
    issues,
    jobs,
    locks,
    logs,
    machines,
    meta,
    runs,
)


def reclassify(s: Session, now: datetime) -> tuple[CellChange, ...]:
    """Derive every cell from its evidence with this release's rules, store what differs, and tell it. A signature is
    looked for only where none, or another one, was.

    Right after a run it finds nothing: cells are kept up to date as evidence comes in.
    """
    touch(s)
    # What took too long once may be found on a machine that is less busy.
    s.execute(sa.update(attempts).where(attempts.c.searched.contains('"is_late":true')).values(searched=None))
    places = sa.union(sa.select(*place_of(attempts)), sa.select(*place_of(cells)))
    changes = rederive(s, [CellKey(*row) for row in s.execute(places)], now)
    announce(s, "reclassified", now, changed=len(changes))
    return changes


def derive_by_these_rules(s: Session, now: datetime) -> None:
    """Derive every cell anew where the store's were derived by an older release's rules; else nothing."""
    if is_of_older_rules(s):
        reclassify(s, now)
        s.execute(sa.delete(meta).where(meta.c.name == RULES_IN_META))
        s.execute(sa.insert(meta).values(name=RULES_IN_META, value=RULES))


def prune(
    s: Session, now: datetime, *, superseded_days: float, history_days: float, logs_days: float | None = None
) -> dict[str, Removed]:
    """Remove superseded attempts older than `superseded_days`, their logs already after `logs_days` (None: with them),
    and the history of ended runs after `history_days`: how they went, and the runs themselves. Tells what went of each
    kind.

    What counts is never removed, however old, nor what is voided, nor what belongs to issues or builds that the
    catalogue does not have at the moment. Of each cell and machine the newest attempt stays whole, so that no cell is
    lost and each says what it said. What a page or a feed tells of changes stays, with the runs it names.
    Rolled back, it has told what it would do.
    """
    touch(s)
    old, aged = now - timedelta(days=superseded_days), now - timedelta(days=history_days)
    thinned = now - timedelta(days=superseded_days if logs_days is None else min(logs_days, superseded_days))
    logs_gone = _delete(s, logs, _only_superseded(thinned), logs.c.zlib)
    places, attempts_gone = _delete_superseded(s, old)
    rederive(s, places, now)
    is_quiet = s.execute(sa.select(sa.func.count()).where(jobs.c.state == JobState.LEASED)).scalar_one() == 0
    gone = {
        "logs": _sum(logs_gone, _delete(s, logs, _unreferred(logs.c.digest, attempts.c.log_digest), logs.c.zlib)),
        "attempts": attempts_gone,
        "locks": _delete_locks(s) if is_quiet else Removed(),
        "machines": _delete_machines(s, aged) if is_quiet else Removed(),
        "events": _delete_steps(s, aged),
        **_delete_runs(s, aged),
    }
    counters.forget_unseen(s, aged)
    return gone


# How runs went on, step by step. All other kinds tell of changes, of their causes, or that a run began and ended.
_STEPS = ("provisioning", "job_started", "arm_started", "arm_finished", *(f"job_{state}" for state in JobState))
_AT_ONCE = 500


def _superseded(a: Any, before: datetime) -> sa.ColumnElement[bool]:  # noqa: ANN401 - a table or an alias of it
    """The condition for superseded attempts (`a` is their alias): bound to what the repro no longer is, and not the
    newest of their cell and machine.
    """
    newer = attempts.alias()
    same = sa.and_(*(newer.c[name] == a.c[name] for name in ("issue", "build", "hardware", "machine")))
    is_later = sa.or_(
        newer.c.finished_at > a.c.finished_at,
        sa.and_(newer.c.finished_at == a.c.finished_at, newer.c.id > a.c.id),
    )
    return sa.and_(
        a.c.counts_as.is_(None),
        a.c.void.is_(None),
        a.c.finished_at < before,
        a.c.issue.in_(sa.select(issues.c.id).where(issues.c.is_present)),
        a.c.build.in_(sa.select(builds.c.id).where(builds.c.is_present)),
        sa.select(newer.c.id).where(same, is_later).exists(),
    )


def _only_superseded(before: datetime) -> sa.ColumnElement[bool]:
    """Logs of superseded attempts that no other attempt has; equal logs are stored once."""
    of, other = attempts.alias(), attempts.alias()
    theirs = sa.select(of.c.log_digest).where(of.c.log_digest != "", _superseded(of, before))
    others = sa.select(other.c.id).where(other.c.log_digest == logs.c.digest, sa.not_(_superseded(other, before)))
    return sa.and_(logs.c.digest.in_(theirs), ~others.exists())


def _delete_superseded(s: Session, before: datetime) -> tuple[list[CellKey], Removed]:
    """All are looked for before the first goes: what is the newest of its machine depends on the others."""
    a = attempts.alias()
    query = sa.select(a.c.id, a.c.issue, a.c.build, a.c.hardware, a.c.machine, a.c.origin)
    superseded = s.execute(query.where(_superseded(a, before))).all()
    removed = Removed()
    for some in pieces(superseded, _AT_ONCE):
        ids = [row.id for row in some]
        removed = _sum(removed, _delete(s, attempts, attempts.c.id.in_(ids), attempts.c.record))
    counters.subtract_tallies(s, [(row.machine, row.hardware, row.origin) for row in superseded])
    return sorted({CellKey(row.issue, row.build, row.hardware) for row in superseded}), removed


def _delete_locks(s: Session) -> Removed:
    """Delete locks and environments without attempts, never while a job is held: its environment may be there, its
    first attempt not yet.
    """
    of_lock = _delete(s, locks, _unreferred(locks.c.digest, attempts.c.lock_digest), locks.c.zlib)
    unreferred = _unreferred(environments.c.lock_digest, attempts.c.lock_digest)
    return _sum(of_lock, _delete(s, environments, unreferred, environments.c.packages, environments.c.imported))


def _delete_machines(s: Session, before: datetime) -> Removed:
    """Delete machines, never while a job is held, as with locks, and not those that were seen at work since."""
    seen = [key[0] for key, at in counters.load_counters(s).get(counters.SEEN, {}).items() if at >= before.timestamp()]
    gone = sa.and_(_unreferred(machines.c.digest, attempts.c.machine), machines.c.digest.not_in(seen))
    return _delete(s, machines, gone, machines.c.doc)


def _delete_steps(s: Session, before: datetime) -> Removed:
    """Steps of runs that are over; and how long environments took, where no attempt that ran in them is left."""
    going_on = sa.select(runs.c.id).where(runs.c.finished_at.is_(None))
    over = sa.and_(events.c.at < before, events.c.run.not_in(going_on))
    removed = _delete(s, events, sa.and_(over, events.c.kind.in_(_STEPS)), events.c.data)
    jobs_left = set(s.execute(sa.select(attempts.c.job).distinct()).scalars())
    ready = s.execute(sa.select(events.c.id, events.c.data).where(over, events.c.kind == ENVIRONMENT_READY)).all()
    unneeded = [row.id for row in ready if row.data["job"] not in jobs_left]
    for ids in pieces(unneeded, _AT_ONCE):
        removed = _sum(removed, _delete(s, events, events.c.id.in_(ids), events.c.data))
    return removed


def _delete_runs(s: Session, before: datetime) -> dict[str, Removed]:
    """Delete runs that ended and that no event of a change names, with their jobs and arms."""
    named = sa.select(events.c.id).where(events.c.run == runs.c.id, events.c.kind == CHANGED).exists()
    over = sa.and_(runs.c.finished_at.is_not(None), runs.c.finished_at < before, ~named)
    ids = sa.select(runs.c.id).where(over)
    of_jobs = sa.select(jobs.c.id).where(jobs.c.run.in_(ids))
    gone = {"arms": _delete(s, arms, arms.c.job.in_(of_jobs), arms.c.issue, arms.c.arm, arms.c.variant)}
    gone["jobs"] = _delete(s, jobs, jobs.c.run.in_(ids), jobs.c.request, jobs.c.problem)
    gone["runs"] = _delete(s, runs, over, runs.c.request)
    return dict(reversed(gone.items()))


def _unreferred(key: sa.Column[str], by: sa.Column[str]) -> sa.ColumnElement[bool]:
    return ~sa.exists().where(by == key)


def _delete(s: Session, table: sa.Table, which: sa.ColumnElement[bool], *held: sa.Column[Any]) -> Removed:
    """`held` are the columns that make up most of a row's size."""
    size = sum((sa.func.length(_plain(column)) for column in held), start=sa.literal(0))
    sizes = s.execute(sa.delete(table).where(which).returning(size)).scalars().all()
    return Removed(len(sizes), sum(sizes))


def _plain(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    return sa.cast(column, sa.Text) if isinstance(column.type, Json) else column


def _sum(*some: Removed) -> Removed:
    return Removed(sum(removed.rows for removed in some), sum(removed.size for removed in some))
