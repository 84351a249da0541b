"""The queue: runs, their jobs, and who holds which. The database is the only durable queue; carriers may die.

A job is tried until every planned arm of it has its result. A loss (the worker died, or the dispatcher that watched it)
is counted against the arms that were running, else against the job: what dies three times in a row is given up with a
result that says so, and all that is innocent goes on.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from knowngood.domain.errors import UnknownBuild, UnknownIssue
from knowngood.domain.issue import Issue, default_device, digest
from knowngood.domain.measuring.job import ArmSpec, JobSpec, PlannedArm
from knowngood.domain.measuring.planning import PlannedJob
from knowngood.serialization import codec
from knowngood.store.engine import Session
from knowngood.store.evidence import documents
from knowngood.store.evidence.cells import announce, touch
from knowngood.store.records import ArmState, JobState, StaleEvent, UnknownRun
from knowngood.store.statements import insert_or
from knowngood.store.tables import arms, builds, issue_revisions, issues, jobs, leases, runs

DISPATCHER = "dispatcher"
"""The name of the lease that makes a dispatcher the only one."""

_NUL = "\0"  # PostgreSQL keeps none in text, and a dying program may say anything

_ENDED = (JobState.DONE, JobState.POISONED, JobState.CANCELLED)


@dataclass(frozen=True)
class HeldJob:
    """A leased job, as far as taking in its results needs it."""

    id: str
    run: str
    build: str
    hardware: str
    machine: str
    try_no: int
    losses: int
    is_cancelled: bool


def create_run(s: Session, planned: Sequence[PlannedJob], request: Mapping[str, object], now: datetime) -> str:
    """Queue jobs; the run's id. Every arm gets its attempt's id here, so that a job tried twice counts once."""
    touch(s)
    run = uuid4().hex[:12]
    s.execute(sa.insert(runs).values(id=run, created_at=now, request=dict(request)))
    revisions = _present(s, planned)
    _queue(s, run, planned, revisions, now)
    announce(s, "run_created", now, run=run, jobs=len(planned), arms=sum(len(job.arms) for job in planned))
    finish_run_if_over(s, run, now)
    return run


def _present(s: Session, planned: Sequence[PlannedJob]) -> dict[str, str]:
    """The present revision of each planned issue."""
    revisions = dict(s.execute(sa.select(issues.c.id, issues.c.revision).where(issues.c.is_present)).all())
    known_builds = set(s.execute(sa.select(builds.c.id).where(builds.c.is_present)).scalars())
    for job in planned:
        if job.build.id not in known_builds:
            raise UnknownBuild(f'build "{job.build.id}" is not in the catalogue of this store')
        for arm in job.arms:
            if arm.issue not in revisions:
                raise UnknownIssue(f'issue "{arm.issue}" is not in the catalogue of this store')
    return revisions


def _queue(s: Session, run: str, planned: Sequence[PlannedJob], revisions: Mapping[str, str], now: datetime) -> None:
    job_rows = [_job_row(run, position, job, now) for position, job in enumerate(planned)]
    arm_rows = [
        _arm_row(row["id"], position, arm, revisions[arm.issue])
        for row, job in zip(job_rows, planned, strict=True)
        for position, arm in enumerate(job.arms)
    ]
    for table, rows in ((jobs, job_rows), (arms, arm_rows)):
        if rows:
            s.execute(sa.insert(table), rows)


def _job_row(run: str, position: int, job: PlannedJob, now: datetime) -> dict[str, Any]:
    return {
        "id": uuid4().hex,
        "run": run,
        "queued_at": now,
        "position": position,
        "build": job.build.id,
        "hardware": job.hardware,
        "request": codec.REQUEST.dump_json(job.request).decode(),
        "state": JobState.QUEUED if job.arms else JobState.DONE,
        "try_no": 0,
        "losses": 0,
        "holder": "",
        "machine": "",
        "problem": "",
        "finished_at": None if job.arms else now,
    }


def _arm_row(job: str, position: int, arm: PlannedArm, revision: str) -> dict[str, Any]:
    return {
        "attempt": uuid4().hex,
        "job": job,
        "position": position,
        "issue": arm.issue,
        "revision": revision,
        "arm": arm.arm,
        "variant": arm.variant,
        "ordinal": arm.ordinal,
        "binding": arm.binding,
        "state": ArmState.PLANNED,
        "losses": 0,
    }


def claim_job(
    s: Session,
    holder: str,
    now: datetime,
    lease_s: float,
    *,
    hardware: Collection[str] | None = None,
    run: str | None = None,
) -> JobSpec | None:
    """Lease the job that has waited longest, of these hardware classes (None: any) and of this run (None: any).

    One statement chooses and takes, so that two claimers never get the same job; PostgreSQL passes over rows that
    another claimer is looking at, SQLite has one writer at a time.
    """
    waiting = _waiting(hardware, run)
    if hardware is not None:
        longest = _waits_longest(s, hardware, run)
        if longest is None:
            return None
        waiting = _waiting([longest], run)
    first = waiting.with_for_update(skip_locked=True)
    taken = s.execute(
        sa.update(jobs)
        .where(jobs.c.id == first.scalar_subquery(), jobs.c.state == JobState.QUEUED)
        .values(
            state=JobState.LEASED,
            holder=holder,
            lease_until=now + timedelta(seconds=lease_s),
            try_no=jobs.c.try_no + 1,
            started_at=sa.func.coalesce(jobs.c.started_at, now),
        )
        .returning(jobs.c.id)
    ).scalar_one_or_none()
    return _spec(s, taken) if taken is not None else None


def _waiting(hardware: Collection[str] | None, run: str | None) -> sa.Select[tuple[str]]:
    """The queued job that has waited longest."""
    query = sa.select(jobs.c.id).where(jobs.c.state == JobState.QUEUED)
    if hardware is not None:
        # The state in so many words, or neither database uses the index of what is queued.
        query = query.where(jobs.c.hardware.in_(sorted(hardware)), sa.text("jobs.state = 'queued'"))
    if run is not None:
        query = query.where(jobs.c.run == run)
    return query.order_by(jobs.c.queued_at, jobs.c.position, jobs.c.id).limit(1)


def _waits_longest(s: Session, hardware: Collection[str], run: str | None) -> str | None:
    """The class whose first job has waited longest; None where none waits. One look into an index for each: in
    one query, what waits for another class is read first, however much that is.
    """
    first: list[tuple[datetime, int, str, str]] = []
    for class_ in sorted(hardware):
        columns = (jobs.c.queued_at, jobs.c.position, jobs.c.id, jobs.c.hardware)
        row = s.execute(_waiting([class_], run).with_only_columns(*columns)).one_or_none()
        first += [tuple(row)] if row is not None else []
    return min(first)[3] if first else None


def _spec(s: Session, id_: str) -> JobSpec:
    job = s.execute(
        sa.select(jobs, builds.c.doc).join(builds, builds.c.id == jobs.c.build).where(jobs.c.id == id_)
    ).one()
    left = s.execute(
        sa.select(arms, issue_revisions.c.doc)
        .join(
            issue_revisions,
            sa.and_(issue_revisions.c.issue == arms.c.issue, issue_revisions.c.revision == arms.c.revision),
        )
        .where(arms.c.job == id_, arms.c.state != ArmState.DONE)
        .order_by(arms.c.position)
    ).all()
    scripts = {}
    specs = []
    for row in left:
        issue = documents.parse_issue(row.doc)
        scripts[digest(issue.script)] = issue.script
        specs.append(_arm_spec(row, issue, job.hardware))
    return JobSpec(
        job=id_,
        try_no=job.try_no,
        build=documents.parse_build(job.doc),
        hardware=job.hardware,
        request=codec.REQUEST.validate_json(job.request),
        scripts=scripts,
        arms=tuple(specs),
    )


def _arm_spec(row: Any, issue: Issue, hardware: str) -> ArmSpec:  # noqa: ANN401 - a row of the driver
    arm = issue.arm(row.arm)
    params = {variant.id: variant.params for variant in issue.variants}
    return ArmSpec(
        attempt=row.attempt,
        issue=row.issue,
        arm=row.arm,
        variant=row.variant,
        ordinal=row.ordinal,
        binding=row.binding,
        script=digest(issue.script),
        params=params.get(row.variant, {}),
        env=arm.env,
        exercises=arm.exercises,
        timeout_s=issue.timeout_s,
        device=default_device(issue, hardware),
    )


def renew_jobs(s: Session, ids: Collection[str], holder: str, now: datetime, lease_s: float) -> None:
    """Keep these jobs of `holder` for another `lease_s` seconds."""
    s.execute(
        sa.update(jobs)
        .where(jobs.c.id.in_(sorted(ids)), jobs.c.holder == holder, jobs.c.state == JobState.LEASED)
        .values(lease_until=now + timedelta(seconds=lease_s))
    )


def load_cancelled_jobs(s: Session, holder: str) -> frozenset[str]:
    """The jobs of `holder` whose run someone has cancelled."""
    query = (
        sa.select(jobs.c.id)
        .join(runs, runs.c.id == jobs.c.run)
        .where(jobs.c.holder == holder, jobs.c.state == JobState.LEASED, runs.c.cancelled_at.is_not(None))
    )
    return frozenset(s.execute(query).scalars())


def load_orphans(s: Session, holder: str, now: datetime) -> tuple[tuple[str, int], ...]:
    """(job, try) of what is leased by another holder, or longer than its lease."""
    gone = sa.or_(jobs.c.holder != holder, jobs.c.lease_until < now)
    query = sa.select(jobs.c.id, jobs.c.try_no).where(jobs.c.state == JobState.LEASED, gone).order_by(jobs.c.id)
    return tuple((row.id, row.try_no) for row in s.execute(query))


def held_job(s: Session, job: str, try_no: int, holder: str | None = None) -> HeldJob:
    """The job that this try still holds. Raises StaleEvent for any other."""
    row = s.execute(sa.select(jobs, runs.c.cancelled_at).join(runs, runs.c.id == jobs.c.run).where(jobs.c.id == job))
    job_row = row.one_or_none()
    if job_row is None:
        raise StaleEvent(f"job {job} is not in this store")
    if job_row.state != JobState.LEASED or job_row.try_no != try_no:
        raise StaleEvent(
            f"try {try_no} of job {job} no longer holds it: it is {job_row.state}, at try {job_row.try_no}"
        )
    if holder is not None and job_row.holder != holder:
        raise StaleEvent(f"job {job} is held by {job_row.holder}, not by {holder}")
    return HeldJob(
        id=job_row.id,
        run=job_row.run,
        build=job_row.build,
        hardware=job_row.hardware,
        machine=job_row.machine,
        try_no=job_row.try_no,
        losses=job_row.losses,
        is_cancelled=job_row.cancelled_at is not None,
    )


def release_job(s: Session, job: str, try_no: int, now: datetime) -> None:
    """Give a job back unharmed, because its dispatcher has to stop: what is left of it is queued again."""
    touch(s)
    settle(s, held_job(s, job, try_no), JobState.QUEUED, now)


def settle(s: Session, job: HeldJob, state: JobState, now: datetime, problem: str = "") -> None:
    """Take a job out of its lease. Callers pass queued where arms may be left: a cancelled run ends instead."""
    interrupted = sa.and_(arms.c.job == job.id, arms.c.state == ArmState.RUNNING)
    s.execute(sa.update(arms).where(interrupted).values(state=ArmState.PLANNED))
    if state is JobState.QUEUED and not arms_left(s, job.id):
        state = JobState.DONE
    if state is JobState.QUEUED and job.is_cancelled:
        state = JobState.CANCELLED
    ended = state in _ENDED
    problem = problem.replace(_NUL, "")
    s.execute(
        sa.update(jobs)
        .where(jobs.c.id == job.id)
        .values(state=state, holder="", lease_until=None, problem=problem, finished_at=now if ended else None)
    )
    announce(s, f"job_{state}", now, run=job.run, job=job.id, build=job.build, hardware=job.hardware, problem=problem)
    if ended:
        finish_run_if_over(s, job.run, now)


def arms_left(s: Session, job: str) -> tuple[str, ...]:
    """The attempts of a job that have no result yet, in order."""
    query = sa.select(arms.c.attempt).where(arms.c.job == job, arms.c.state != ArmState.DONE)
    return tuple(s.execute(query.order_by(arms.c.position)).scalars())


def finish_run_if_over(s: Session, run: str, now: datetime) -> None:
    going_on = sa.exists().where(jobs.c.run == run, jobs.c.state.not_in(_ENDED))
    over = sa.update(runs).where(runs.c.id == run, runs.c.finished_at.is_(None), ~going_on)
    if s.execute(over.values(finished_at=now).returning(runs.c.id)).scalar_one_or_none():
        announce(s, "run_finished", now, run=run)


def cancel_run(s: Session, run: str, now: datetime) -> None:
    """Ask for a run to end: what waits is cancelled at once, what runs is stopped by its dispatcher.

    Cancelling what has ended changes nothing. Raises UnknownRun.
    """
    touch(s)
    times = s.execute(sa.select(runs.c.finished_at, runs.c.cancelled_at).where(runs.c.id == run)).one_or_none()
    if times is None:
        raise UnknownRun(f'no run "{run}" in this store')
    if times.finished_at is not None or times.cancelled_at is not None:
        return
    s.execute(sa.update(runs).where(runs.c.id == run).values(cancelled_at=now))
    waiting = sa.and_(jobs.c.run == run, jobs.c.state == JobState.QUEUED)
    s.execute(sa.update(jobs).where(waiting).values(state=JobState.CANCELLED, finished_at=now))
    announce(s, "run_cancelled", now, run=run)
    finish_run_if_over(s, run, now)


def take_lease(s: Session, name: str, holder: str, now: datetime, lease_s: float) -> bool:
    """Take or renew a lease; False where another holder has it and it has not run out.

    `now` comes from the holder's own clock: clocks of hosts that share a database must agree to well within `lease_s`.
    """
    until = now + timedelta(seconds=lease_s)
    insert = insert_or(s, leases).values(name=name, holder=holder, until=until)
    free = sa.or_(leases.c.holder == holder, leases.c.until < now)
    taken = insert.on_conflict_do_update(
        index_elements=[leases.c.name], set_={"holder": holder, "until": until}, where=free
    ).returning(leases.c.holder)
    return s.execute(taken).scalar_one_or_none() is not None


def give_lease_back(s: Session, name: str, holder: str) -> None:
    s.execute(sa.delete(leases).where(leases.c.name == name, leases.c.holder == holder))


def find_run_of(s: Session, job: str) -> str:
    """The run that a job belongs to; empty where there is no such job."""
    return s.execute(sa.select(jobs.c.run).where(jobs.c.id == job)).scalar_one_or_none() or ""
