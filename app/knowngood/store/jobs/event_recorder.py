"""Events of workers into the store: one event, one short transaction, at most one result per planned arm."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import cast

import sqlalchemy as sa

from knowngood.domain.access import Actor
from knowngood.domain.issue import digest
from knowngood.domain.measuring.job import (
    ArmFinished,
    ArmStarted,
    Attempt,
    EnvironmentReady,
    Event,
    JobEnded,
    JobStarted,
    PlannedArm,
    Provisioning,
)
from knowngood.domain.verdicts.outcome import Ending, RunRecord, Trouble, TroubleCode
from knowngood.domain.verdicts.verdict import CellKey
from knowngood.serialization import codec
from knowngood.serialization.bounds import event_problem, record_problem
from knowngood.store import audit_log, counters
from knowngood.store.engine import Session
from knowngood.store.evidence import attempt_codec, incoming_attempts
from knowngood.store.evidence.cells import (
    StoredCatalogue,
    announce,
    insert_missing,
    load_keys_of_logs,
    rederive,
    touch,
)
from knowngood.store.evidence.incoming_attempts import IncomingAttempts
from knowngood.store.evidence.voids import load_standing_voids, void_over
from knowngood.store.jobs.job_queue import HeldJob, arms_left, held_job, settle
from knowngood.store.records import ArmState, JobState, StaleEvent, UnfitEvent
from knowngood.store.tables import arms, attempts, environments, jobs, locks, logs, machines

_DISPATCHER = Actor("dispatcher")

LOSS_LIMIT = 3
"""After how many losses in a row an arm, or a job that starts none, is given up."""


@dataclass(frozen=True)
class _RecordedArm(PlannedArm):
    """A planned arm; the fields are columns of its table."""

    attempt: str
    state: str
    losses: int


def record_event(s: Session, event: Event, now: datetime, *, holder: str | None = None) -> None:
    """Take in one event of the try that holds its job; the same event twice changes nothing the second time.

    Raises StaleEvent for a try that lost its job, or (where `holder` is given) for a job that another one holds, and
    UnfitEvent where it says more than may be kept.
    """
    touch(s)
    job = held_job(s, event.job, event.try_no, holder)
    problem = event_problem(event)
    if problem is not None:
        raise UnfitEvent(f"the agent said what cannot be kept: {problem}")
    match event:
        case JobStarted():
            _job_started(s, job, event, now)
        case Provisioning():
            announce(s, "provisioning", now, run=job.run, build=job.build, hardware=job.hardware, **asdict(event))
        case EnvironmentReady():
            _environment_ready(s, job, event, now)
        case ArmStarted():
            _arm_started(s, job, event, now)
        case ArmFinished():
            _arm_finished(s, job, event, now)
        case JobEnded():
            _job_ended(s, job, event, now)


def _job_started(s: Session, job: HeldJob, event: JobStarted, now: datetime) -> None:
    digest = event.machine.digest
    insert_missing(s, machines, [{"digest": digest, "doc": codec.MACHINE.dump_json(event.machine).decode()}])
    s.execute(sa.update(jobs).where(jobs.c.id == job.id).values(machine=digest))
    counters.note_seen(s, digest, now)
    announce(s, "job_started", now, run=job.run, job=job.id, build=job.build, hardware=job.hardware, try_no=job.try_no)


def _environment_ready(s: Session, job: HeldJob, event: EnvironmentReady, now: datetime) -> None:
    if digest(event.lock) == event.lock_digest:  # else it could be put in the place of another
        insert_missing(s, locks, [{"digest": event.lock_digest, "zlib": attempt_codec.pack(event.lock)}])
        observed = {"packages": dict(event.packages), "imported": dict(event.imported)}
        insert_missing(s, environments, [{"lock_digest": event.lock_digest, **observed}])
    counters.count(s, {counters.PROVISIONED: 1, counters.PROVISION_MS: int(event.seconds * 1000)})
    announce(
        s,
        "environment_ready",
        now,
        run=job.run,
        job=job.id,
        build=job.build,
        seconds=event.seconds,
        reused=event.reused,
    )


def _arm_started(s: Session, job: HeldJob, event: ArmStarted, now: datetime) -> None:
    arm = _planned(s, job, event.attempt)
    if arm.state == ArmState.PLANNED:
        s.execute(sa.update(arms).where(arms.c.attempt == event.attempt).values(state=ArmState.RUNNING))
        announce(s, "arm_started", now, run=job.run, **_named(job, arm))


def _arm_finished(s: Session, job: HeldJob, event: ArmFinished, now: datetime) -> None:
    arm = _planned(s, job, event.attempt)
    if arm.state == ArmState.DONE:
        return
    if event.record.ending is Ending.CANCELLED and not job.is_cancelled:
        # Stopped with its dispatcher, not at anybody's wish: no result, the arm is still to be run.
        s.execute(sa.update(arms).where(arms.c.attempt == event.attempt).values(state=ArmState.PLANNED))
        return
    _store_result(s, job, arm, event, now)
    counters.note_seen(s, event.machine, now)
    s.execute(sa.update(jobs).where(jobs.c.id == job.id).values(losses=0))


def _store_result(s: Session, job: HeldJob, arm: _RecordedArm, event: ArmFinished, now: datetime) -> None:
    log = attempt_codec.cut(event.log)
    log_digest = attempt_codec.log_digest(log)
    new_logs = insert_missing(s, logs, [{"digest": log_digest, "zlib": attempt_codec.pack(log)}] if log else [])
    attempt = Attempt(
        id=arm.attempt,
        job=job.id,
        issue=arm.issue,
        build=job.build,
        hardware=job.hardware,
        arm=arm.arm,
        variant=arm.variant,
        ordinal=arm.ordinal,
        binding=arm.binding,
        record=_within_bounds(event.record),
        log_digest=log_digest,
        lock_digest=event.lock_digest,
        machine=event.machine,
        started_at=event.started_at,
        finished_at=event.finished_at,
    )
    counted = _keep(s, job, attempt, log, now, also=load_keys_of_logs(s, new_logs))
    s.execute(sa.update(arms).where(arms.c.attempt == arm.attempt).values(state=ArmState.DONE))
    took_ms = max(0, int((event.finished_at - event.started_at).total_seconds() * 1000))
    counters.count(s, {counters.named(counters.ARM_MS, job.hardware): took_ms})
    announce(s, "arm_finished", now, run=job.run, **_named(job, arm), outcome=counted)


def _within_bounds(record: RunRecord) -> RunRecord:
    """The record, or one that says why it was thrown away. The other arms of its job are not to suffer from it."""
    problem = record_problem(record)
    if problem is None:
        return record
    sentence = f"what the arm said of itself was thrown away: {problem}; look at its script"
    return RunRecord(ending=Ending.NOT_STARTED, trouble=Trouble(TroubleCode.HARNESS, sentence))


def _keep(
    s: Session, job: HeldJob, attempt: Attempt, log: str, now: datetime, *, also: Collection[CellKey]
) -> str | None:
    """Store an attempt and derive its cell, and these; tell what it counts as.

    One of its number that came in a bundle before and says something else gives way: we know that this one was
    measured.
    """
    void = void_over(attempt, "", now, load_standing_voids(s))
    settled = incoming_attempts.settle(
        s, [attempt], token="", voided=[attempt.id] if void is not None else [], is_ours=True
    )
    for clash in settled.replaced:
        audit_log.note(s, _DISPATCHER, "results.replace", clash.id, now, origin=clash.origin, token=clash.token)
    also = {*also, *settled.left}
    catalogue = StoredCatalogue(s)
    arrivals = IncomingAttempts(catalogue)
    taken = arrivals.take(attempt, {attempt.log_digest: log}, is_voided=void is not None)
    row = attempt_codec.attempt_row(attempt, now, void=void) | vars(taken)
    if insert_missing(s, attempts, [row]):
        counters.count(s, arrivals.counters)
        counters.add_tallies(s, [(attempt.machine, attempt.hardware, attempt.origin, attempt.finished_at)])
        rederive(s, arrivals.keys.union(also), now, catalogue, run=job.run, arrived=arrivals.arrived)
        return taken.counts_as
    rederive(s, arrivals.keys.union(also), now, catalogue, run=job.run)
    return cast(
        "str | None", s.execute(sa.select(attempts.c.counts_as).where(attempts.c.id == attempt.id)).scalar_one()
    )


def _planned(s: Session, job: HeldJob, attempt: str) -> _RecordedArm:
    recorded = _load_arms(s, job, arms.c.attempt == attempt)
    if not recorded:
        raise StaleEvent(f"attempt {attempt} was never planned for job {job.id}")
    return recorded[0]


def _load_arms(s: Session, job: HeldJob, which: sa.ColumnElement[bool]) -> list[_RecordedArm]:
    columns = [arms.c[field.name] for field in fields(_RecordedArm)]
    rows = s.execute(sa.select(*columns).where(arms.c.job == job.id, which).order_by(arms.c.position))
    return [_RecordedArm(*row) for row in rows]


def _named(job: HeldJob, arm: _RecordedArm) -> dict[str, object]:
    return {
        "job": job.id,
        "build": job.build,
        "hardware": job.hardware,
        "attempt": arm.attempt,
        "issue": arm.issue,
        "arm": arm.arm,
        "variant": arm.variant,
        "ordinal": arm.ordinal,
    }


def _job_ended(s: Session, job: HeldJob, event: JobEnded, now: datetime) -> None:
    if arms_left(s, job.id) and not job.is_cancelled:
        _lose(s, job, event.problem or "the worker ended before every arm had run", now)
    else:
        settle(s, job, JobState.QUEUED, now, event.problem)


def lose_job(s: Session, job: str, try_no: int, reason: str, now: datetime) -> None:
    """Count a loss against what was running and queue the rest again. `reason` is a sentence. Raises StaleEvent."""
    touch(s)
    _lose(s, held_job(s, job, try_no), reason, now)


def _lose(s: Session, job: HeldJob, reason: str, now: datetime) -> None:
    if job.is_cancelled:
        settle(s, job, JobState.QUEUED, now, reason)
        return
    counters.count(s, {counters.LOSSES: 1})
    running = _load_arms(s, job, arms.c.state == ArmState.RUNNING)
    ids = [arm.attempt for arm in running]
    s.execute(sa.update(arms).where(arms.c.attempt.in_(ids)).values(losses=arms.c.losses + 1))
    _give_up(s, job, [arm for arm in running if arm.losses + 1 >= LOSS_LIMIT], reason, now)
    losses = job.losses if running else job.losses + 1
    s.execute(sa.update(jobs).where(jobs.c.id == job.id).values(losses=losses))
    if losses < LOSS_LIMIT:
        settle(s, job, JobState.QUEUED, now, reason)
    else:
        _give_up(s, job, _load_arms(s, job, arms.c.state != ArmState.DONE), reason, now)
        settle(s, job, JobState.POISONED, now, reason)


def _give_up(s: Session, job: HeldJob, given_up: Sequence[_RecordedArm], reason: str, now: datetime) -> None:
    """The one result of an arm that cannot be had here: infrastructure, never the issue, and it says why."""
    sentence = f"given up: the worker died {LOSS_LIMIT} times while at this; the last time: {reason}"
    record = RunRecord(ending=Ending.NOT_STARTED, trouble=Trouble(TroubleCode.HARNESS, sentence))
    for arm in given_up:
        event = ArmFinished(job.id, job.try_no, arm.attempt, record, "", "", job.machine, now, now)
        _store_result(s, job, arm, event, now)
