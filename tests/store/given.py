"""A store in some state, made through its own doors: a test says which."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue
from knowngood.domain.measuring.job import ArmFinished, ArmSpec, ArmStarted, JobEnded, JobSpec, JobStarted
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.measuring.planning import KnownAttempts, PlannedJob, PlanRequest, plan_jobs
from knowngood.domain.verdicts.outcome import Outcome, RunRecord
from knowngood.store.catalogue import save_catalogue
from knowngood.store.engine import Engine, unit_of_work
from knowngood.store.jobs.event_recorder import record_event
from knowngood.store.jobs.job_queue import claim_job, create_run
from tests.make import HARDWARE, NOON, make_build, make_issue, make_record

HOLDER = "dispatcher-1"
MACHINE = Machine("AMD EPYC", "avx2", 2, 8 << 30, "Debian 12", "6.1", "2.36", "g++ 12.2.0")


def planned(
    issues: Sequence[Issue] = (make_issue(),), builds: Sequence[Build] = (make_build(),), repeat: int = 1
) -> tuple[PlannedJob, ...]:
    return plan_jobs(issues, builds, [HARDWARE], KnownAttempts(), PlanRequest(repeat=repeat))


def given_catalogue(engine: Engine, issues: Sequence[Issue], builds: Sequence[Build]) -> None:
    with unit_of_work(engine) as s:
        save_catalogue(s, issues, builds, NOON)


def given_run(
    engine: Engine,
    issues: Sequence[Issue] = (make_issue(),),
    builds: Sequence[Build] = (make_build(),),
    repeat: int = 1,
    *,
    at: datetime = NOON,
) -> str:
    """A catalogue, and a run of all of it in the queue."""
    given_catalogue(engine, issues, builds)
    with unit_of_work(engine) as s:
        return create_run(s, planned(issues, builds, repeat), {"by": "test"}, at)


def claim(engine: Engine, holder: str = HOLDER, at: datetime = NOON) -> JobSpec:
    with unit_of_work(engine) as s:
        spec = claim_job(s, holder, at, 30.0)
    assert spec is not None
    return spec


def started(spec: JobSpec) -> JobStarted:
    return JobStarted(spec.job, spec.try_no, MACHINE)


def running(spec: JobSpec, arm: ArmSpec) -> ArmStarted:
    return ArmStarted(spec.job, spec.try_no, arm.attempt, NOON)


def finished(
    spec: JobSpec, arm: ArmSpec, outcome: Outcome = Outcome.PASS, *, log: str = "", record: RunRecord | None = None
) -> ArmFinished:
    return ArmFinished(
        job=spec.job,
        try_no=spec.try_no,
        attempt=arm.attempt,
        record=record or make_record(outcome, spec.build),
        log=log,
        lock_digest="",
        machine=MACHINE.digest,
        started_at=NOON,
        finished_at=NOON + timedelta(seconds=5),
    )


def ended(spec: JobSpec, problem: str = "") -> JobEnded:
    return JobEnded(spec.job, spec.try_no, problem)


def given_results(engine: Engine, baseline: Outcome = Outcome.MATCH, *, log: str = "said so\n") -> None:
    """Every queued job is run to its end: controls and workarounds pass, the baseline does as told."""
    while True:
        with unit_of_work(engine) as s:
            spec = claim_job(s, HOLDER, NOON, 30.0)
        if spec is None:
            return
        with unit_of_work(engine) as s:
            record_event(s, started(spec), NOON)
            for arm in spec.arms:
                outcome = baseline if arm.arm == "baseline" else Outcome.PASS
                record_event(s, finished(spec, arm, outcome, log=log), NOON)
            record_event(s, ended(spec), NOON)
