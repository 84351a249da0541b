"""Queries of the store about its own evidence, on both databases."""

from datetime import timedelta

from knowngood.domain.issue import BASELINE, CONTROL
from knowngood.domain.measuring.job import EnvironmentReady
from knowngood.domain.verdicts.false_changes import AttemptTime, ProvisioningTime, pairs_of
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.evidence import quality as evidence_quality
from knowngood.store.jobs.event_recorder import record_event
from tests.fixtures.databases import CountStatements
from tests.make import HARDWARE, NOON, make_build, make_issue, make_record
from tests.store.given import (
    MACHINE,
    claim,
    ended,
    finished,
    given_catalogue,
    given_results,
    given_run,
    started,
)

ISSUE, BUILD = make_issue(), make_build()


def test_controls_and_baselines_that_count_are_trials_and_what_was_asked_twice_is_a_pair(
    engine: Engine, count_statements: CountStatements
) -> None:
    given_run(engine, repeat=2)
    given_results(engine)
    with reading(engine) as s, count_statements(engine) as said:
        trials = evidence_quality.load_trials(s)
    assert len(said) == 1
    assert sorted((one.judged.arm, one.ordinal) for one in trials) == [
        (BASELINE, 1),
        (BASELINE, 2),
        (CONTROL, 1),
        (CONTROL, 2),
    ]
    assert {(one.hardware, one.judged.machine, one.judged.wall_s) for one in trials} == {
        (HARDWARE, MACHINE.digest, 5.0)
    }
    (pair,) = pairs_of({ISSUE.id: ISSUE}, trials)
    assert not pair.is_false_change


def test_superseded_attempts_are_no_trials_and_no_outcomes(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    given_catalogue(engine, [make_issue(workarounds=())], [BUILD])
    changed = tuple(type(arm)(arm.id, arm.exercises, code=f"{arm.code}, changed") for arm in ISSUE.arms)
    given_catalogue(engine, [make_issue(arms=changed)], [BUILD])
    with reading(engine) as s:
        assert evidence_quality.load_trials(s) == ()
        assert evidence_quality.load_outcomes(s) == {}
        assert evidence_quality.load_times(s) == {}


def test_outcomes_are_counted_by_hardware_class(engine: Engine) -> None:
    given_run(engine)
    given_results(engine, Outcome.ENV_ERROR)
    with reading(engine) as s:
        assert evidence_quality.load_outcomes(s) == {HARDWARE: {Outcome.PASS: 2, Outcome.ENV_ERROR: 1}}


def test_times_are_told_apart_where_the_process_came_to_its_own_end(engine: Engine) -> None:
    given_run(engine)
    spec = claim(engine)
    records = {
        CONTROL: make_record(wall_s=5.0, own_s=3.0),
        BASELINE: make_record(Outcome.TIMEOUT, wall_s=60.0, own_s=0.4),
        "aot_eager": make_record(Outcome.CANCELLED, wall_s=0.0),
    }
    with unit_of_work(engine) as s:
        record_event(s, started(spec), NOON)
        for arm in spec.arms[:2]:
            record_event(s, finished(spec, arm, record=records[arm.arm]), NOON)
    with reading(engine) as s:
        (times,) = evidence_quality.load_times(s).values()
        assert len(evidence_quality.load_times(s, newest=1)[HARDWARE]) == 1
    assert set(times) == {AttemptTime(5.0, 3.0, is_told=True), AttemptTime(60.0, 0.4, is_told=False)}


def test_environments_are_timed_beside_the_attempts_that_ran_in_them(engine: Engine) -> None:
    with reading(engine) as s:
        assert evidence_quality.load_provisioned(s) == ProvisioningTime(0, 0.0, 0, 0.0)
    given_run(engine)
    spec = claim(engine)
    ready = EnvironmentReady(spec.job, spec.try_no, "lock", "l1", {}, {}, 12.5)
    with unit_of_work(engine) as s:
        record_event(s, started(spec), NOON)
        record_event(s, ready, NOON)
        for arm in spec.arms:
            record_event(s, finished(spec, arm), NOON)
        record_event(s, ended(spec), NOON)
    given_run(engine, at=NOON + timedelta(days=1))  # another job, whose environment told nothing
    given_results(engine)
    with reading(engine) as s:
        assert evidence_quality.load_provisioned(s) == ProvisioningTime(1, 12.5, 3, 15.0)


def test_a_cells_attempts_are_judged_with_ordinal_and_binding(engine: Engine) -> None:
    given_run(engine, repeat=2)
    given_results(engine)
    with reading(engine) as s:
        found = evidence_quality.load_judged(s, ISSUE, BUILD, HARDWARE)
        assert evidence_quality.load_judged(s, make_issue("toy-9"), BUILD, HARDWARE) == ()
    baseline = {(ordinal, bound, one.outcome) for ordinal, bound, one in found if one.arm == BASELINE}
    assert {(ordinal, outcome) for ordinal, _, outcome in baseline} == {(1, Outcome.MATCH), (2, Outcome.MATCH)}
    assert len({bound for _, bound, _ in baseline}) == 1
