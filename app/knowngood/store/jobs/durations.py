"""Durations: of making environments, with their locks, for the price of a plan; of a run so far, for what is left."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import EnvironmentRequest, Issue, environment_request
from knowngood.domain.measuring.worker_stats import JobAt, Key, seconds_left
from knowngood.store.engine import Session
from knowngood.store.evidence import attempt_codec
from knowngood.store.knowledge.model import Recorded
from knowngood.store.knowledge.snapshot import recorded_with_shipped
from knowngood.store.queries import load_durations
from knowngood.store.records import ArmState, JobState, RunRow
from knowngood.store.tables import arms, attempts, events, jobs, locks

ENVIRONMENT_READY = "environment_ready"


def load_environment_s(s: Session, before: datetime | None = None) -> float | None:
    """Mean seconds of the environments that were made through this store and whose events are still here, not found
    ready; None where there is none.
    """
    query = sa.select(events.c.data).where(events.c.kind == ENVIRONMENT_READY)
    ready = s.execute(query if before is None else query.where(events.c.at < before)).scalars().all()
    made = [float(data["seconds"]) for data in ready if not data["reused"]]
    return sum(made) / len(made) if made else None


def load_time_left(s: Session, run: RunRow, now: datetime) -> float | None:
    """The seconds that a run still takes, about: its page and the terminal that waits for it say the same. None for a
    run that is over, and before its first arm has ended where the run does not say on how many slots.
    """
    slots = run.request.get("slots")
    if run.finished_at is not None or not (run.arms_done or slots):
        return None
    since = run.created_at
    known = recorded_with_shipped(Recorded(load_durations(s, since), load_environment_s(s, since)))
    jobs_at = load_jobs_at(s, run, now)
    return seconds_left(jobs_at, known.durations, known.environment_s, slots if isinstance(slots, int) else 0)


def load_jobs_at(s: Session, run: RunRow, now: datetime) -> tuple[JobAt, ...]:
    """The progress of each job of a run, in seconds since the run was requested."""

    def at(moment: datetime) -> float:
        return (moment - run.created_at).total_seconds()

    started = {
        str(data["attempt"]): when
        for when, data in s.execute(
            sa.select(events.c.at, events.c.data).where(events.c.run == run.id, events.c.kind == "arm_started")
        )
    }
    by_job = _arms_of(s, run.id)
    ready = {
        str(data["job"]): when
        for when, data in s.execute(
            sa.select(events.c.at, events.c.data)
            .where(events.c.run == run.id, events.c.kind == ENVIRONMENT_READY)
            .order_by(events.c.id)
        )
    }
    return tuple(
        JobAt(
            build=job.build,
            is_over=job.state not in {JobState.QUEUED, JobState.LEASED},
            is_ready=job.id in ready,
            environment=(at(job.started_at), at(ready.get(job.id, job.finished_at or now))) if job.started_at else None,
            to_do=[arm.key for arm in by_job[job.id] if not arm.is_running and arm.span is None],
            running=[
                (arm.key, (at(started.get(arm.attempt, now)), at(now))) for arm in by_job[job.id] if arm.is_running
            ],
            done=[(arm.key, (at(arm.span[0]), at(arm.span[1]))) for arm in by_job[job.id] if arm.span],
        )
        for job in run.jobs
    )


@dataclass(frozen=True)
class _ArmAt:
    """`span` is None of an arm that has not ended."""

    attempt: str
    key: Key
    is_running: bool
    span: tuple[datetime, datetime] | None


def _arms_of(s: Session, run: str) -> Mapping[str, list[_ArmAt]]:
    """The arms of a run by job, without those that have ended and left nothing."""
    by_job = defaultdict[str, list[_ArmAt]](list)
    query = (
        sa.select(arms.c.job, arms.c.attempt, arms.c.issue, arms.c.arm, arms.c.variant, arms.c.state)
        .add_columns(attempts.c.started_at, attempts.c.finished_at)
        .join(jobs, jobs.c.id == arms.c.job)
        .outerjoin(attempts, attempts.c.id == arms.c.attempt)
        .where(jobs.c.run == run)
    )
    for row in s.execute(query):
        is_done = row.state == ArmState.DONE
        span = (row.started_at, row.finished_at) if is_done and row.started_at is not None else None
        if span or not is_done:
            key = (row.issue, row.arm, row.variant)
            by_job[row.job].append(_ArmAt(row.attempt, key, row.state == ArmState.RUNNING, span))
    return by_job


def load_locks(s: Session, issues: Iterable[Issue], builds: Iterable[Build]) -> dict[EnvironmentRequest, str]:
    """The newest lock that counted attempts ran with, of each environment that these issues ask for, whoever made it.

    That of a build which a machine had already is the list of what was installed there, and no lock.
    """
    by_id: Mapping[str, Issue] = {issue.id: issue for issue in issues}
    columns = {build.id: build for build in builds}
    a = attempts.c
    counted = sa.and_(a.counts_as.is_not(None), a.lock_digest != "")
    newest = sa.func.max(a.finished_at)
    query = sa.select(a.issue, a.build, a.lock_digest).where(counted).group_by(a.issue, a.build, a.lock_digest)
    digests = {
        environment_request(by_id[issue], columns[build]): digest
        for issue, build, digest in s.execute(query.order_by(newest, a.lock_digest))
        if issue in by_id and build in columns
    }
    texts = attempt_codec.load_texts(s, locks, set(digests.values()))
    return {request: texts[digest] for request, digest in digests.items() if digest in texts}
