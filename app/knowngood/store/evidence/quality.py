"""Statistics of the store's own evidence: what ran twice, what gave no answer, where the time went."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter

from knowngood.domain.builds.build import Build
from knowngood.domain.grouping import gathered
from knowngood.domain.issue import BASELINE, CONTROL, Issue
from knowngood.domain.measuring.job import LOCAL
from knowngood.domain.verdicts.false_changes import AttemptTime, ProvisioningTime, Trial
from knowngood.domain.verdicts.outcome import Ending, Outcome
from knowngood.domain.verdicts.verdict import NOT_RUN, Judged, judge
from knowngood.store import unreadable
from knowngood.store.engine import Session
from knowngood.store.evidence import attempt_codec
from knowngood.store.statements import counted, is_of
from knowngood.store.tables import attempts, events

NEWEST = 1500
"""Of so many attempts the records are read to tell where time went: a page must not grow with the years."""


def load_trials(s: Session) -> tuple[Trial, ...]:
    """Every control and baseline that counts, with the outcome it counts as and without its evidence: of the cells of
    which a variant was asked more than once, for the others have nothing to compare.

    Its seconds are those from start to finish as the worker saw them, not the record's own.
    """
    a = attempts.c
    columns = (a.issue, a.build, a.hardware, a.binding, a.lock_digest, a.ordinal)
    of_attempt = (a.id, a.arm, a.variant, a.counts_as, a.machine, a.started_at, a.finished_at)
    cell = (a.issue, a.build, a.hardware)
    again = sa.select(*cell).where(a.counts_as.is_not(None), a.arm == BASELINE)
    again = again.group_by(*cell, a.variant).having(sa.func.count() > 1).distinct()
    repeated = again.subquery()
    same = sa.and_(*(column == repeated.c[column.name] for column in cell))
    query = sa.select(*columns, *of_attempt).join(repeated, same)
    query = query.where(a.counts_as.is_not(None), a.arm.in_([CONTROL, BASELINE])).order_by(a.finished_at, a.id)
    return tuple(map(_trial, s.execute(query)))


def _trial(row: Any) -> Trial:  # noqa: ANN401 - a row of the driver
    """Taken apart at once: to ask a row for each name takes as long as the query."""
    issue, build, hardware, binding, lock, ordinal, *of_attempt = row
    id_, arm, variant, counts_as, machine, started_at, finished_at = of_attempt
    return Trial(
        issue=issue,
        build=build,
        hardware=hardware,
        binding=binding,
        lock=lock,
        ordinal=ordinal,
        judged=Judged(
            attempt=id_,
            arm=arm,
            variant=variant,
            outcome=Outcome(counts_as),
            reason=NOT_RUN,
            line="",
            measured_at=finished_at,
            wall_s=(finished_at - started_at).total_seconds(),
            machine=machine,
        ),
    )


def load_outcomes(s: Session) -> dict[str, dict[Outcome, int]]:
    """The number of attempts that count as each outcome, by hardware class."""
    a = attempts.c
    rows = counted(s, a.hardware, a.counts_as, which=a.counts_as.is_not(None))
    counts = gathered((hardware, (Outcome(outcome), n)) for hardware, outcome, n in rows)
    return {hardware: dict(counts[hardware]) for hardware in sorted(counts)}


@dataclass(frozen=True)
class _Times:
    """The part of a record that tells of time; the rest of its JSON is passed over."""

    ending: Ending
    wall_s: float = 0.0
    own_s: float = 0.0


_TIMES = TypeAdapter(_Times)
_LAST_WORD = frozenset({Ending.RETURNED, Ending.RAISED})  # after its last observation such a process ends at once


def load_times(s: Session, newest: int = NEWEST) -> dict[str, tuple[AttemptTime, ...]]:
    """The times of the newest attempts that ran, by hardware class."""
    a = attempts.c
    query = sa.select(a.id, a.hardware, a.record).where(a.counts_as.is_not(None)).order_by(a.finished_at.desc(), a.id)
    rows = ((row.id, row) for row in s.execute(query.limit(newest)))
    times = gathered(each for each in unreadable.readable("attempts", rows, _took) if each[1].wall_s)
    return {hardware: tuple(times[hardware]) for hardware in sorted(times)}


def _took(row: Any) -> tuple[str, AttemptTime]:  # noqa: ANN401 - a row of the driver
    times = _TIMES.validate_json(row.record)
    return row.hardware, AttemptTime(times.wall_s, times.own_s, is_told=times.own_s > 0 and times.ending in _LAST_WORD)


def load_provisioned(s: Session) -> ProvisioningTime:
    """The time of jobs that ran through this store and have an attempt that counts: imported ones bring no time of
    theirs.

    What is superseded stays out, with the jobs that made nothing else: pruning may have removed it, or not yet.
    """
    ready = s.execute(sa.select(events.c.data).where(events.c.kind == "environment_ready")).scalars().all()
    durations = unreadable.readable("events", (("environment_ready", data) for data in ready), _ready)
    jobs: Mapping[str, float] = dict(durations)
    if not jobs:
        return ProvisioningTime(0, 0.0, 0, 0.0)
    a = attempts.c
    counted = sa.and_(a.origin == LOCAL, a.counts_as.is_not(None))
    took = [row for row in s.execute(sa.select(a.job, a.started_at, a.finished_at).where(counted)) if row.job in jobs]
    of_jobs = {row.job for row in took}
    return ProvisioningTime(
        environments=len(of_jobs),
        seconds=sum(seconds for job, seconds in jobs.items() if job in of_jobs),
        attempts=len(took),
        processes_s=sum((row.finished_at - row.started_at).total_seconds() for row in took),
    )


def _ready(data: Mapping[str, Any]) -> tuple[str, float]:
    return str(data["job"]), float(data["seconds"])


def load_judged(s: Session, issue: Issue, build: Build, hardware: str) -> tuple[tuple[int, str, Judged], ...]:
    """All attempts of a cell as judged today, each with its ordinal and binding; voided ones are left out."""
    return tuple(
        (
            evidence.attempt.ordinal,
            evidence.attempt.binding,
            judge(evidence.attempt, issue, build, evidence.log, evidence.searched),
        )
        for evidence in attempt_codec.load_evidence(s, *is_of((issue.id, build.id, hardware), attempts))
        if evidence.void is None
    )
