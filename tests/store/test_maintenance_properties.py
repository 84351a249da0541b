"""Whatever happened, pruning takes nothing away that anybody is told: cells, quality, changes, and evidence shown."""

import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from knowngood.domain.access import Actor
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import Issue, digest
from knowngood.domain.measuring.job import EnvironmentReady
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.measuring.planning import PlanRequest, plan_jobs
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import CellKey
from knowngood.domain.verdicts.voids import NoteKind
from knowngood.store import queries
from knowngood.store.engine import Engine, connect, reading, unit_of_work
from knowngood.store.evidence import notes as evidence_notes
from knowngood.store.evidence import quality as evidence_quality
from knowngood.store.evidence.changes import load_news
from knowngood.store.jobs.event_recorder import record_event
from knowngood.store.jobs.job_queue import claim_job, create_run
from knowngood.store.maintenance import prune, reclassify
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.store.given import HOLDER, MACHINE, ended, finished, given_catalogue, started

BUILDS = (make_build(),)
MACHINES = (MACHINE, replace(MACHINE, cores=4))
ISSUES = (make_issue(), make_issue("toy-2", workarounds=()))  # only the first is edited
BY = Actor("tester")
TOLD = (Outcome.MATCH, Outcome.PASS, Outcome.OTHER_FAILURE, Outcome.TIMEOUT, Outcome.ENV_ERROR)


@dataclass(frozen=True)
class Measured:
    machine: Machine
    outcome: Outcome
    log: str


@dataclass(frozen=True)
class Edited:
    """The arm of this name in the first issue is now of this revision; 1 is how it began."""

    arm: str
    revision: int


@dataclass(frozen=True)
class Noted:
    kind: NoteKind


STEPS = st.lists(
    st.tuples(
        st.one_of(
            st.builds(Measured, st.sampled_from(MACHINES), st.sampled_from(TOLD), st.sampled_from(["", "a", "b"])),
            st.builds(Edited, st.sampled_from(["baseline", "control", "aot_eager"]), st.integers(1, 3)),
            st.builds(Noted, st.sampled_from([NoteKind.VOID, NoteKind.RESTORE])),
        ),
        st.integers(0, 60),
    ),
    min_size=2,
    max_size=6,
)
DAYS = st.sampled_from([0.0, 1.0, 30.0, 90.0])


def issue_with(edits: dict[str, int]) -> Issue:
    arms = tuple(replace(arm, code=f"{arm.id}-{edits.get(arm.id, 1)}") for arm in ISSUES[0].arms)
    return replace(ISSUES[0], arms=arms)


def live_through(engine: Engine, steps: Iterable[tuple[Measured | Edited | Noted, int]]) -> datetime:
    """Every step so many days after the one before; the day on which the last one was."""
    edits: dict[str, int] = {}
    now = NOON
    given_catalogue(engine, ISSUES, BUILDS)
    for step, days in steps:
        now += timedelta(days=days)
        match step:
            case Measured():
                measure(engine, [issue_with(edits), ISSUES[1]], step, now)
            case Edited():
                edits[step.arm] = step.revision
                given_catalogue(engine, [issue_with(edits), ISSUES[1]], BUILDS)
            case Noted():
                key = CellKey(ISSUES[0].id, BUILDS[0].id, HARDWARE)
                with suppress(BadRequest), unit_of_work(engine) as s:  # of what nobody measured there is nothing to say
                    evidence_notes.add_note(s, key, step.kind, "said so", by=BY, now=now)
    return now


def measure(engine: Engine, issues: list[Issue], step: Measured, now: datetime) -> None:
    with reading(engine) as s:
        known = queries.load_known_attempts(s)
    planned = plan_jobs(issues, BUILDS, [HARDWARE], known, PlanRequest(force=True))
    with unit_of_work(engine) as s:
        create_run(s, planned, {"by": "test"}, now)
    while True:
        with unit_of_work(engine) as s:
            spec = claim_job(s, HOLDER, now, 30.0)
            if spec is None:
                return
            record_event(s, replace(started(spec), machine=step.machine), now)
            lock = f"lock of {spec.build.id}"
            ready = EnvironmentReady(spec.job, spec.try_no, lock, digest(lock), {}, {}, 2.0)
            record_event(s, ready, now)
            for arm in spec.arms:
                outcome = step.outcome if arm.arm == "baseline" else Outcome.PASS
                event = replace(
                    finished(spec, arm, outcome, log=step.log),
                    machine=step.machine.digest,
                    lock_digest=digest(lock),
                    started_at=now,
                    finished_at=now + timedelta(seconds=5),
                )
                record_event(s, event, now)
            record_event(s, ended(spec), now)


def told(engine: Engine) -> object:
    """All that pages tell. How many superseded attempts there still are is the one thing that pruning changes."""
    with reading(engine) as s:
        cells = queries.load_cells(s)
        evidence = {cell.evidence: queries.load_attempt(s, cell.evidence) for cell in cells if cell.evidence}
        news = load_news(s, 1000)
        return (
            [replace(cell, superseded=0) for cell in cells],
            evidence,
            sorted(evidence_quality.load_trials(s), key=repr),
            evidence_quality.load_outcomes(s),
            evidence_quality.load_times(s),
            evidence_quality.load_provisioned(s),
            news,
            {one.run: queries.load_run(s, one.run) for one in news if one.run},
        )


@pytest.mark.timeout(600)
@settings(
    max_examples=settings().max_examples // 4,  # each lives through months
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to shrink a history takes longer than to read it
)
@given(steps=STEPS, superseded=DAYS, logs=DAYS, history=DAYS, after=st.integers(0, 200))
def test_nothing_that_is_told_changes_by_pruning(
    migrated_sqlite: Path,
    steps: list[tuple[Measured | Edited | Noted, int]],
    superseded: float,
    logs: float,
    history: float,
    after: int,
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "knowngood.db"
        shutil.copy(migrated_sqlite, path)
        engine = connect(f"sqlite:///{path}")
        now = live_through(engine, steps) + timedelta(days=after)
        before = told(engine)
        with unit_of_work(engine) as s:
            prune(s, now, superseded_days=superseded, history_days=history, logs_days=logs)
        assert told(engine) == before
        with unit_of_work(engine) as s:
            assert reclassify(s, now) == ()
        engine.dispose()
