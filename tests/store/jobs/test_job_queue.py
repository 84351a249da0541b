from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from knowngood.domain.errors import UnknownBuild, UnknownIssue
from knowngood.domain.issue import Variant, digest
from knowngood.store import queries
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.jobs.event_recorder import record_event
from knowngood.store.jobs.job_queue import (
    DISPATCHER,
    cancel_run,
    claim_job,
    create_run,
    give_lease_back,
    load_cancelled_jobs,
    load_orphans,
    release_job,
    renew_jobs,
    take_lease,
)
from knowngood.store.records import JobState, RunState, UnknownRun
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.store.given import (
    HOLDER,
    claim,
    ended,
    finished,
    given_catalogue,
    given_results,
    given_run,
    planned,
    running,
)

ISSUE, BUILD = make_issue(), make_build()
LATER = NOON + timedelta(minutes=5)


def state_of(engine: Engine, run: str) -> RunState:
    with reading(engine) as s:
        return queries.load_run(s, run).state


def test_a_specification_holds_all_that_an_agent_needs(engine: Engine) -> None:
    issue = make_issue(variants=(Variant("small", "", {"size": 8}), Variant("large", "", {"size": 1024})))
    given_run(engine, [issue], [BUILD])
    spec = claim(engine)
    assert (spec.try_no, spec.build, spec.hardware) == (1, BUILD, HARDWARE)
    assert spec.request.build == BUILD.id
    assert spec.scripts == {digest(issue.script): issue.script}
    assert [(arm.arm, arm.variant, dict(arm.params)) for arm in spec.arms[:3]] == [
        ("control", "small", {"size": 8}),
        ("control", "large", {"size": 1024}),
        ("baseline", "small", {"size": 8}),
    ]
    baseline = spec.arms[2]
    assert baseline.exercises == ("dynamo_graph", "inductor_cpp")
    assert baseline.timeout_s == issue.timeout_s
    assert len({arm.attempt for arm in spec.arms}) == len(spec.arms)


def test_a_job_runs_the_repro_it_was_planned_with(engine: Engine) -> None:
    given_run(engine)
    given_catalogue(engine, [make_issue(script="def control(): changed\n")], [BUILD])
    assert list(claim(engine).scripts.values()) == [ISSUE.script]


def test_jobs_are_claimed_in_the_order_they_were_asked_for(engine: Engine) -> None:
    builds = [make_build("2.6.0+cu124"), make_build("2.7.0+cu126")]
    given_run(engine, [ISSUE], builds, at=LATER)
    given_run(engine, [ISSUE], [builds[1], builds[0]], at=NOON)
    assert [claim(engine).build for _ in range(4)] == [builds[1], builds[0], *builds]


def test_a_claimer_gets_only_what_it_can_serve(engine: Engine) -> None:
    run = given_run(engine)
    with unit_of_work(engine) as s:
        assert claim_job(s, HOLDER, NOON, 30.0, hardware=["cuda-sm_90"]) is None
        assert claim_job(s, HOLDER, NOON, 30.0, run="another") is None
        assert claim_job(s, HOLDER, NOON, 30.0, hardware=[HARDWARE], run=run) is not None


def test_hundreds_of_jobs_go_to_eight_claimers_without_a_double(engine: Engine) -> None:
    issue = make_issue(workarounds=())
    builds = [make_build(f"2.{minor}.{patch}+cu124") for minor in range(40) for patch in range(10)]
    given_run(engine, [issue], builds)
    claimed: Counter[str] = Counter()

    def take(thread: int) -> list[str]:
        mine: list[str] = []
        while True:
            with unit_of_work(engine) as s:
                spec = claim_job(s, f"claimer-{thread}", NOON, 30.0)
            if spec is None:
                return mine
            mine.append(spec.job)

    with ThreadPoolExecutor(8) as pool:
        for mine in pool.map(take, range(8)):
            claimed.update(mine)
    assert len(claimed) == len(builds)
    assert set(claimed.values()) == {1}


def test_a_run_of_nothing_is_done_at_once(engine: Engine) -> None:
    given_catalogue(engine, [], [])
    with unit_of_work(engine) as s:
        run = create_run(s, [], {}, NOON)
    assert state_of(engine, run) is RunState.DONE


def test_a_run_goes_from_queued_through_running_to_done(engine: Engine) -> None:
    run = given_run(engine)
    assert state_of(engine, run) is RunState.QUEUED
    spec = claim(engine)
    assert state_of(engine, run) is RunState.RUNNING
    with unit_of_work(engine) as s:
        for arm in spec.arms:
            record_event(s, finished(spec, arm), NOON)
    with reading(engine) as s:
        row = queries.load_run(s, run)
    assert (row.arms_done, row.arms_total, row.state) == (3, 3, RunState.RUNNING)
    with unit_of_work(engine) as s:
        record_event(s, ended(spec), LATER)
    with reading(engine) as s:
        row = queries.load_run(s, run)
    assert (row.state, row.finished_at, row.jobs[0].state) == (RunState.DONE, LATER, JobState.DONE)
    assert row.request == {"by": "test"}


def test_the_newest_runs_are_listed_first_with_their_jobs(engine: Engine) -> None:
    first, second = given_run(engine), given_run(engine, at=LATER)
    with reading(engine) as s:
        assert [run.id for run in queries.load_runs(s, 10)] == [second, first]
        assert [run.id for run in queries.load_runs(s, 1)] == [second]
        assert queries.load_runs(s, 1)[0].jobs[0].arms_total == 3


def test_an_unknown_run_is_told(engine: Engine) -> None:
    with reading(engine) as s, pytest.raises(UnknownRun, match='no run "r-1" in this store'):
        queries.load_run(s, "r-1")
    with pytest.raises(UnknownRun), unit_of_work(engine) as s:
        cancel_run(s, "r-1", NOON)


def test_what_the_catalogue_does_not_know_cannot_be_queued(engine: Engine) -> None:
    given_catalogue(engine, [ISSUE], [])
    with pytest.raises(UnknownBuild, match="is not in the catalogue"), unit_of_work(engine) as s:
        create_run(s, planned(), {}, NOON)
    given_catalogue(engine, [], [BUILD])
    with pytest.raises(UnknownIssue, match="toy-1"), unit_of_work(engine) as s:
        create_run(s, planned(), {}, NOON)
    with reading(engine) as s:
        assert queries.load_runs(s, 10) == ()


def test_cancelling_ends_what_waits_at_once(engine: Engine) -> None:
    run = given_run(engine)
    with unit_of_work(engine) as s:
        cancel_run(s, run, NOON)
        assert claim_job(s, HOLDER, NOON, 30.0) is None
    assert state_of(engine, run) is RunState.CANCELLED


def test_cancelling_what_runs_asks_its_dispatcher(engine: Engine) -> None:
    run = given_run(engine)
    spec = claim(engine)
    with unit_of_work(engine) as s:
        assert load_cancelled_jobs(s, HOLDER) == frozenset()
        cancel_run(s, run, NOON)
        cancel_run(s, run, NOON)
        assert load_cancelled_jobs(s, HOLDER) == {spec.job}
        assert load_cancelled_jobs(s, "dispatcher-2") == frozenset()
    assert state_of(engine, run) is RunState.CANCELLING
    with unit_of_work(engine) as s:
        record_event(s, ended(spec, "cancelled"), NOON)
    assert state_of(engine, run) is RunState.CANCELLED


def test_cancelling_what_is_done_changes_nothing(engine: Engine) -> None:
    run = given_run(engine)
    given_results(engine)
    with unit_of_work(engine) as s:
        cancel_run(s, run, LATER)
    assert state_of(engine, run) is RunState.DONE


def test_a_released_job_is_queued_again_with_what_is_left(engine: Engine) -> None:
    given_run(engine)
    spec = claim(engine)
    with unit_of_work(engine) as s:
        record_event(s, finished(spec, spec.arms[0]), NOON)
        record_event(s, running(spec, spec.arms[1]), NOON)
        release_job(s, spec.job, spec.try_no, NOON)
    again = claim(engine)
    assert again.try_no == 2
    assert again.arms == spec.arms[1:]


def test_what_another_holds_or_nobody_renewed_is_an_orphan(engine: Engine) -> None:
    given_run(engine)
    spec = claim(engine, at=NOON)
    with unit_of_work(engine) as s:
        assert load_orphans(s, HOLDER, NOON) == ()
        assert load_orphans(s, "dispatcher-2", NOON) == ((spec.job, 1),)
        assert load_orphans(s, HOLDER, LATER) == ((spec.job, 1),)
        renew_jobs(s, [spec.job], HOLDER, LATER, 30.0)
        assert load_orphans(s, HOLDER, LATER) == ()


def test_one_holder_at_a_time_has_a_lease(engine: Engine) -> None:
    def take(holder: str, seconds: float) -> bool:
        with unit_of_work(engine) as s:
            return take_lease(s, DISPATCHER, holder, NOON + timedelta(seconds=seconds), 30.0)

    assert take("a", 0)
    assert not take("b", 10)
    assert take("a", 20)
    assert not take("b", 49)
    assert take("b", 51)
    assert not take("a", 52)
    with unit_of_work(engine) as s:
        give_lease_back(s, DISPATCHER, "a")
    assert not take("a", 53)
    with unit_of_work(engine) as s:
        give_lease_back(s, DISPATCHER, "b")
    with reading(engine) as s:
        assert queries.load_lease(s, DISPATCHER) is None
    assert take("a", 54)
