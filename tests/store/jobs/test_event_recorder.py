from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from knowngood.domain.issue import digest
from knowngood.domain.measuring.job import EnvironmentReady, Event, JobSpec, Provisioning
from knowngood.domain.message import english
from knowngood.domain.verdicts.outcome import Ending, Outcome, Raised
from knowngood.domain.verdicts.verdict import INFRASTRUCTURE, Cell, Verdict
from knowngood.serialization.bounds import LOG_LIMIT_BYTES
from knowngood.store import queries
from knowngood.store.engine import Engine, connect, reading, unit_of_work
from knowngood.store.jobs.event_recorder import lose_job, record_event
from knowngood.store.jobs.job_queue import cancel_run, release_job
from knowngood.store.maintenance import reclassify
from knowngood.store.migrations import migrate
from knowngood.store.records import JobState, RunState, StaleEvent, UnfitEvent
from knowngood.store.tables import attempts, logs, metadata
from tests.make import HARDWARE, NOON, SIGNATURE_TEXT, make_build, make_issue, make_record
from tests.store.given import (
    HOLDER,
    MACHINE,
    claim,
    ended,
    finished,
    given_results,
    given_run,
    running,
    started,
)

ISSUE, BUILD = make_issue(), make_build()


def record(engine: Engine, *said: Event, holder: str | None = None) -> None:
    with unit_of_work(engine) as s:
        for event in said:
            record_event(s, event, NOON, holder=holder)


def load_cell(engine: Engine) -> Cell:
    with reading(engine) as s:
        return queries.load_cells(s)[0]


def results(engine: Engine) -> Counter[tuple[str, str, int]]:
    """How many attempts there are per planned (arm, variant, ordinal)."""
    with reading(engine) as s:
        rows = s.execute(sa.select(attempts.c.arm, attempts.c.variant, attempts.c.ordinal))
        return Counter((arm, variant, ordinal) for arm, variant, ordinal in rows)


def test_a_result_is_in_the_matrix_as_soon_as_it_is_recorded(engine: Engine) -> None:
    given_run(engine)
    spec = claim(engine)
    control, baseline, _ = spec.arms
    record(engine, started(spec), finished(spec, control), finished(spec, baseline, Outcome.MATCH))
    cell = load_cell(engine)
    assert (cell.verdict, cell.control, cell.attempts) == (Verdict.AFFECTED, Outcome.PASS, {"match": 1})
    with reading(engine) as s:
        kinds = [event.kind for event in queries.load_events(s, 0, None, 100)]
    assert kinds[-4:] == ["cell_changed", "arm_finished", "cell_changed", "arm_finished"]


def test_an_attempt_comes_back_with_all_that_was_seen(engine: Engine) -> None:
    given_run(engine)
    spec = claim(engine)
    arm = spec.arms[1]
    lock = 'lock-version = "1.0"\n'
    ready = EnvironmentReady(spec.job, 1, lock, digest(lock), {"torch": "2.6.0"}, {"torch": "2.6.0+cu124"}, 3.5)
    done = finished(spec, arm, Outcome.MATCH, log="compiling\x00\nfailed\n")
    record(engine, started(spec), ready, done.__class__(**{**vars(done), "lock_digest": digest(lock)}))
    with reading(engine) as s:
        detail = queries.load_attempt(s, arm.attempt)
    assert detail.attempt.record == make_record(Outcome.MATCH)
    assert (detail.log, detail.lock, detail.packages) == ("compiling\x00\nfailed\n", lock, {"torch": "2.6.0"})
    assert detail.machine == MACHINE
    assert detail.judgement.outcome is Outcome.MATCH
    assert detail.judgement.line == SIGNATURE_TEXT
    assert detail.counted
    assert detail.attempt.origin == "local"


def test_a_signature_in_the_log_alone_is_found(engine: Engine) -> None:
    given_run(engine)
    spec = claim(engine)
    died = make_record(Outcome.CRASH)
    record(engine, finished(spec, spec.arms[0]), finished(spec, spec.arms[1], record=died, log=f"\n{SIGNATURE_TEXT}\n"))
    assert load_cell(engine).line == SIGNATURE_TEXT


def test_an_event_twice_counts_once(engine: Engine) -> None:
    given_run(engine)
    spec = claim(engine)
    done = finished(spec, spec.arms[0])
    record(engine, started(spec), done)
    with reading(engine) as s:
        before = queries.load_cells(s), queries.load_last_event(s)
    record(engine, done)
    with reading(engine) as s:
        assert (queries.load_cells(s), queries.load_last_event(s)) == before
    assert results(engine) == {("control", "default", 1): 1}


def test_an_event_of_an_earlier_try_is_refused(engine: Engine) -> None:
    given_run(engine)
    first = claim(engine)
    with unit_of_work(engine) as s:
        lose_job(s, first.job, first.try_no, "the agent was killed by SIGKILL", NOON)
    for stale in (started(first), finished(first, first.arms[0]), ended(first)):
        with pytest.raises(StaleEvent, match=r"try 1 of job .* no longer holds it: it is queued"):
            record(engine, stale)
    second = claim(engine)
    with pytest.raises(StaleEvent, match="it is leased, at try 2"):
        record(engine, finished(first, first.arms[0]))
    record(engine, finished(second, second.arms[0]))
    assert results(engine) == {("control", "default", 1): 1}


def test_an_event_for_a_job_that_another_holds_is_refused(engine: Engine) -> None:
    given_run(engine)
    spec = claim(engine)
    with pytest.raises(StaleEvent, match="is held by dispatcher-1, not by dispatcher-2"):
        record(engine, started(spec), holder="dispatcher-2")
    record(engine, started(spec), holder=HOLDER)


def test_a_record_like_none_of_ours_is_thrown_away_and_says_so(engine: Engine) -> None:
    """It could be exported, and imported by nobody."""
    given_run(engine)
    spec = claim(engine)
    arm = spec.arms[1]
    forged = replace(make_record(Outcome.PASS), probes={"dynamo_graph": 1 << 60})
    record(engine, started(spec), finished(spec, arm, record=forged))
    with reading(engine) as s:
        detail = queries.load_attempt(s, arm.attempt)
    assert detail.judgement.outcome in INFRASTRUCTURE
    assert detail.attempt.record.trouble is not None
    assert "thrown away: one of its numbers is not within" in detail.attempt.record.trouble.sentence


def ready(spec: JobSpec, **changed: Any) -> EnvironmentReady:
    return replace(EnvironmentReady(spec.job, 1, "", digest(""), {"torch": "2.7.1"}, {}, 3.5), **changed)


def arm_with(spec: JobSpec, **changed: Any) -> Event:
    return replace(finished(spec, spec.arms[0]), **changed)


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (lambda spec: replace(started(spec), machine=replace(MACHINE, compiler="g" * 301)), "more than 300 characters"),
        (lambda spec: ready(spec, packages={"torch": "2" * 301}), "more than 300 characters"),
        (lambda spec: ready(spec, lock="x" * (LOG_LIMIT_BYTES + 1)), "its lock is longer than any of ours"),
        (lambda spec: ready(spec, seconds=1e300), "its seconds are no time that anything of ours takes"),
        (lambda spec: ready(spec, seconds=float("nan")), "its seconds are no time that anything of ours takes"),
        (lambda spec: Provisioning(spec.job, 1, "p" * 301), "more than 300 characters"),
        (lambda spec: Provisioning(spec.job, 1, "sync", "d" * 10_001), "what it says has more than 10000 characters"),
        (lambda spec: Provisioning(spec.job, 1, "sync", "", -1, 10), "one of its numbers is not within"),
        (lambda spec: Provisioning(spec.job, 1, "sync", "", 1, 1 << 60), "one of its numbers is not within"),
        (lambda spec: ended(spec, "p" * 10_001), "what it says has more than 10000 characters"),
        (lambda spec: arm_with(spec, machine="m" * 33), "its machine or lock is no digest"),
        (lambda spec: arm_with(spec, lock_digest="l" * 33), "its machine or lock is no digest"),
    ],
    ids=[
        "the compiler of a machine",
        "the version of a package",
        "a lock",
        "seconds that are too many",
        "seconds that are none",
        "a phase",
        "a detail",
        "fewer bytes than none",
        "more bytes than there are",
        "a last word",
        "a machine",
        "the digest of a lock",
    ],
)
def test_an_event_that_says_too_much_is_refused(
    engine: Engine, event: Callable[[JobSpec], Event], sentence: str
) -> None:
    given_run(engine)
    spec = claim(engine)
    with pytest.raises(UnfitEvent, match=sentence):
        record(engine, event(spec))


def test_events_of_nothing_we_planned_are_refused(engine: Engine) -> None:
    given_run(engine)
    spec = claim(engine)
    arm = spec.arms[0].__class__(**{**vars(spec.arms[0]), "attempt": "f" * 32})
    with pytest.raises(StaleEvent, match="was never planned"):
        record(engine, finished(spec, arm))
    with pytest.raises(StaleEvent, match="is not in this store"):
        record(engine, started(JobSpec(**{**vars(spec), "job": "f" * 32})))


def test_a_lost_worker_is_replaced_and_only_what_is_left_runs_again(engine: Engine) -> None:
    run = given_run(engine)
    spec = claim(engine)
    record(engine, finished(spec, spec.arms[0]), running(spec, spec.arms[1]))
    with unit_of_work(engine) as s:
        lose_job(s, spec.job, 1, "the agent was killed by SIGKILL", NOON)
    with reading(engine) as s:
        assert queries.load_run(s, run).jobs[0].problem == "the agent was killed by SIGKILL"
    again = claim(engine)
    assert (again.try_no, again.arms) == (2, spec.arms[1:])


def test_a_loss_after_the_last_result_loses_nothing(engine: Engine) -> None:
    run = given_run(engine)
    spec = claim(engine)
    record(engine, *(finished(spec, arm) for arm in spec.arms))
    with unit_of_work(engine) as s:
        lose_job(s, spec.job, 1, "the agent was killed by SIGKILL", NOON)
    with reading(engine) as s:
        row = queries.load_run(s, run)
    assert (row.state, row.jobs[0].state) == (RunState.DONE, JobState.DONE)


def test_an_arm_that_kills_its_worker_three_times_is_given_up_and_the_rest_goes_on(engine: Engine) -> None:
    run = given_run(engine)
    for _ in range(3):
        spec = claim(engine)
        baseline = next(arm for arm in spec.arms if arm.arm == "baseline")
        done = [finished(spec, arm) for arm in spec.arms if arm.arm == "control"]
        record(engine, started(spec), *done, running(spec, baseline))
        with unit_of_work(engine) as s:
            lose_job(s, spec.job, spec.try_no, "the agent was killed by SIGKILL", NOON)
    last = claim(engine)
    assert [arm.arm for arm in last.arms] == ["aot_eager"]
    record(engine, finished(last, last.arms[0]), ended(last))
    cell = load_cell(engine)
    assert cell.verdict is Verdict.INCONCLUSIVE
    assert "the worker died 3 times" in english(cell.reason)
    assert "killed by SIGKILL" in english(cell.reason)
    assert set(results(engine).values()) == {1}
    with reading(engine) as s:
        assert queries.load_run(s, run).state is RunState.DONE


def test_a_job_whose_worker_dies_three_times_before_any_arm_is_given_up_whole(engine: Engine) -> None:
    run = given_run(engine)
    for _ in range(3):
        spec = claim(engine)
        record(engine, started(spec))
        with unit_of_work(engine) as s:
            lose_job(s, spec.job, spec.try_no, "no agent could be started", NOON)
    with reading(engine) as s:
        row = queries.load_run(s, run)
    assert (row.state, row.jobs[0].state, row.arms_done) == (RunState.DONE, JobState.POISONED, 3)
    assert results(engine) == {
        ("control", "default", 1): 1,
        ("baseline", "default", 1): 1,
        ("aot_eager", "default", 1): 1,
    }
    assert load_cell(engine).verdict is Verdict.INCONCLUSIVE


def test_progress_forgives_earlier_losses(engine: Engine) -> None:
    run = given_run(engine)
    for n in range(4):
        spec = claim(engine)
        if n == 1:
            record(engine, finished(spec, spec.arms[0]))
        with unit_of_work(engine) as s:
            lose_job(s, spec.job, spec.try_no, "lost", NOON)
        with reading(engine) as s:
            state = queries.load_run(s, run).jobs[0].state
        assert state is (JobState.QUEUED if n < 3 else JobState.POISONED)


def test_an_agent_that_leaves_arms_undone_counts_as_lost(engine: Engine) -> None:
    run = given_run(engine)
    spec = claim(engine)
    record(engine, finished(spec, spec.arms[0]), ended(spec, "the disk is full"))
    with reading(engine) as s:
        (job,) = queries.load_run(s, run).jobs
    assert (job.state, job.problem) == (JobState.QUEUED, "the disk is full")


def test_an_arm_stopped_with_its_dispatcher_is_no_result(engine: Engine) -> None:
    given_run(engine)
    spec = claim(engine)
    record(engine, running(spec, spec.arms[0]), finished(spec, spec.arms[0], Outcome.CANCELLED))
    assert results(engine) == {}
    with unit_of_work(engine) as s:
        release_job(s, spec.job, 1, NOON)
    assert claim(engine).arms == spec.arms


def test_an_arm_stopped_because_its_run_was_cancelled_is_kept_as_what_it_is(engine: Engine) -> None:
    run = given_run(engine)
    spec = claim(engine)
    with unit_of_work(engine) as s:
        cancel_run(s, run, NOON)
    record(engine, finished(spec, spec.arms[1], Outcome.CANCELLED), ended(spec, "cancelled"))
    with reading(engine) as s:
        (row,) = queries.load_attempts(s, ISSUE.id, BUILD.id, HARDWARE)
        assert queries.load_run(s, run).state is RunState.CANCELLED
    assert row.judgement.outcome is Outcome.CANCELLED
    assert load_cell(engine).verdict is Verdict.INCONCLUSIVE


def test_progress_of_an_environment_can_be_followed(engine: Engine) -> None:
    run = given_run(engine)
    spec = claim(engine)
    record(engine, Provisioning(spec.job, 1, "sync", "torch", 10, 100))
    with reading(engine) as s:
        event = queries.load_events(s, 0, run, 100)[-1]
    assert event.kind == "provisioning"
    assert event.run == run
    assert {"phase": "sync", "detail": "torch", "done_bytes": 10, "total_bytes": 100}.items() <= event.data.items()
    with reading(engine) as s:
        assert queries.load_events(s, event.id, run, 100) == ()
        assert queries.load_events(s, 0, "another", 100) == ()
        assert [one.kind for one in queries.load_events(s, 0, None, 100, kinds=["run_created"])] == ["run_created"]


def test_a_flood_of_a_log_is_cut_in_the_middle(engine: Engine) -> None:
    given_run(engine)
    spec = claim(engine)
    flood = "first line\n" + "ü" * LOG_LIMIT_BYTES + "\nlast line"
    record(engine, finished(spec, spec.arms[0], log=flood))
    with reading(engine) as s:
        log = queries.load_attempt(s, spec.arms[0].attempt).log
    assert len(log.encode()) <= LOG_LIMIT_BYTES
    assert log.startswith("first line\n")
    assert log.endswith("\nlast line")
    assert "bytes left out" in log


def test_equal_logs_are_kept_once(engine: Engine) -> None:
    given_run(engine)
    given_results(engine, log="the same\n")
    with reading(engine) as s:
        assert s.execute(sa.select(sa.func.count()).select_from(logs)).scalar_one() == 1
        assert sum(results(engine).values()) == 3


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Any:
    engine = connect(f"sqlite:///{tmp_path_factory.mktemp('orders')}/knowngood.db")
    migrate(engine)
    yield engine
    engine.dispose()


def emptied(engine: Engine) -> Engine:
    with unit_of_work(engine) as s:
        for table in reversed(metadata.sorted_tables):
            s.execute(sa.delete(table).where(sa.true() if table.name != "meta" else sa.false()))
    return engine


MIXED = {
    "control": [Outcome.PASS, Outcome.PASS, Outcome.PASS],
    "baseline": [Outcome.MATCH, Outcome.PASS, Outcome.ENV_ERROR],
    "aot_eager": [Outcome.PASS, Outcome.OTHER_FAILURE, Outcome.MATCH],
}


@settings(max_examples=settings().max_examples // 2)  # each is a store of its own
@given(order=st.permutations(range(9)), lost=st.sets(st.integers(0, 8), max_size=2), twice=st.booleans())
def test_whatever_the_order_losses_and_repetitions_the_cell_is_the_same(
    scratch: Engine, order: list[int], lost: set[int], twice: bool
) -> None:
    engine = emptied(scratch)
    given_run(engine, repeat=3)
    spec = claim(engine)
    for place, chosen in enumerate(order):
        arm = claimed_arm(spec, chosen)
        done = finished(spec, arm, MIXED[arm.arm][arm.ordinal - 1])
        record(engine, *([done, done] if twice else [done]))
        if place in lost and place < len(order) - 1:
            with unit_of_work(engine) as s:
                lose_job(s, spec.job, spec.try_no, "lost", NOON)
            spec = JobSpec(**{**vars(spec), "try_no": claim(engine).try_no})
    record(engine, ended(spec))
    assert set(results(engine).values()) == {1}
    cell = load_cell(engine)
    assert (cell.verdict, cell.attempts) == (Verdict.FLAKY, {"match": 1, "pass": 1, "env_error": 1})
    with unit_of_work(engine) as s:
        assert reclassify(s, NOON) == ()


def claimed_arm(spec: JobSpec, chosen: int) -> Any:
    return spec.arms[chosen]


def test_a_record_with_anything_in_it_can_be_stored(engine: Engine) -> None:
    given_run(engine)
    spec = claim(engine)
    odd = make_record(
        raised=Raised("odd\x00Error", "tab\t nul\x00 emoji 🦆", "text\x00"), ending=Ending.RAISED, observed={}
    )
    record(engine, finished(spec, spec.arms[0], record=odd))
    with reading(engine) as s:
        assert queries.load_attempt(s, spec.arms[0].attempt).attempt.record == odd
