"""The one reading that the metrics are made of, on both databases."""

from datetime import timedelta

import pytest
import sqlalchemy as sa

from knowngood.domain.verdicts.outcome import Outcome, Trouble, TroubleCode
from knowngood.domain.verdicts.verdict import RULES, Verdict
from knowngood.store import counters
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.gauges import Gauges, load_gauges
from knowngood.store.jobs.event_recorder import lose_job, record_event
from knowngood.store.jobs.job_queue import DISPATCHER, take_lease
from knowngood.store.maintenance import reclassify
from knowngood.store.records import JobState
from knowngood.store.tables import attempts, cells, meta
from tests.fixtures.databases import CountStatements
from tests.make import HARDWARE, NOON, make_build, make_issue, make_record
from tests.store.given import HOLDER, MACHINE, claim, ended, finished, given_results, given_run, started


def gauges(engine: Engine, after: timedelta = timedelta(0)) -> Gauges:
    with reading(engine) as s:
        return load_gauges(s, NOON + after)


def test_an_empty_store_has_nothing_to_tell(engine: Engine) -> None:
    found = gauges(engine)
    assert (found.jobs, found.arms, found.cells, found.cell_ages, found.seen) == ({}, {}, {}, {}, {})
    assert (found.oldest_queued_at, found.last_import_at, found.lease) == (None, None, None)


def test_what_waits_is_told_by_class_with_its_age(engine: Engine) -> None:
    given_run(engine, [make_issue()], [make_build(), make_build("2.7.0+cu126")])
    found = gauges(engine)
    assert found.jobs == {(HARDWARE, JobState.QUEUED): 2}
    assert found.arms == {HARDWARE: 6}
    assert (found.oldest_queued_at, found.runs) == (NOON, 1)
    spec = claim(engine)
    with unit_of_work(engine) as s:
        record_event(s, started(spec), NOON)
        record_event(s, finished(spec, spec.arms[0]), NOON)
    found = gauges(engine)
    assert found.jobs == {(HARDWARE, JobState.QUEUED): 1, (HARDWARE, JobState.LEASED): 1}
    assert found.arms == {HARDWARE: 5}


def test_cells_are_told_by_verdict_with_their_ages(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    found = gauges(engine, timedelta(days=1, seconds=5))
    assert found.cells == {(HARDWARE, Verdict.AFFECTED): 1}
    assert found.cell_ages == {0.5: 86400.0, 0.9: 86400.0, 1.0: 86400.0}
    assert (found.stale, found.runs, found.arms) == (0, 0, {})
    assert gauges(engine, timedelta(days=200)).stale == 1


def test_ages_are_those_of_the_cells_at_their_place(engine: Engine) -> None:
    builds = [make_build(f"2.{minor}.0+cu124") for minor in range(11)]
    given_run(engine, [make_issue()], builds)
    given_results(engine)
    with unit_of_work(engine) as s:
        for days, build in enumerate(builds):
            aged = sa.update(cells).where(cells.c.build == build.id)
            s.execute(aged.values(measured_at=NOON - timedelta(days=days)))
    assert gauges(engine).cell_ages == {0.5: 5 * 86400.0, 0.9: 9 * 86400.0, 1.0: 10 * 86400.0}


def test_a_nightly_is_stale_sooner_than_a_release(engine: Engine) -> None:
    given_run(engine, [make_issue()], [make_build(), make_build("2.12.0.dev20261101+cu126")])
    given_results(engine)
    assert gauges(engine, timedelta(days=8)).stale == 1
    assert gauges(engine, timedelta(days=181)).stale == 2


def test_attempts_are_counted_as_they_come_by_outcome_and_cause(engine: Engine) -> None:
    given_run(engine)
    spec = claim(engine)
    trouble = Trouble(TroubleCode.DISK_FULL, "the disk is full")
    with unit_of_work(engine) as s:
        record_event(s, started(spec), NOON)
        for arm in spec.arms:
            is_baseline = arm.arm == "baseline"
            record = make_record(Outcome.ENV_ERROR if is_baseline else Outcome.PASS, spec.build)
            record = make_record(Outcome.ENV_ERROR, spec.build, trouble=trouble) if is_baseline else record
            for _ in range(2):  # the same event again changes nothing
                record_event(s, finished(spec, arm, record=record), NOON)
        record_event(s, ended(spec), NOON)
    found = gauges(engine)
    assert found.attempts == {("pass", ""): 2, ("env_error", "disk_full"): 1}
    assert found.arm_seconds == {HARDWARE: 15.0}
    assert [(digest, *last) for digest, last in found.seen.items()] == [(MACHINE.digest, NOON, MACHINE)]


def test_deriving_anew_and_pruning_count_nothing_again(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    before = gauges(engine).attempts
    assert before == {("match", ""): 1, ("pass", ""): 2}
    with unit_of_work(engine) as s:
        reclassify(s, NOON)
    assert gauges(engine).attempts == before
    with unit_of_work(engine) as s:
        s.execute(sa.delete(attempts))
    assert gauges(engine).attempts == before


def test_a_lost_job_is_counted(engine: Engine) -> None:
    given_run(engine)
    spec = claim(engine)
    with unit_of_work(engine) as s:
        lose_job(s, spec.job, spec.try_no, "its worker died", NOON)
    assert gauges(engine).losses == 1


@pytest.mark.parametrize("after_s", [0, 20, 40])
def test_the_dispatchers_lease_is_told_as_it_stands(engine: Engine, after_s: int) -> None:
    with unit_of_work(engine) as s:
        assert take_lease(s, DISPATCHER, HOLDER, NOON, 30.0)
    lease = gauges(engine, timedelta(seconds=after_s)).lease
    assert lease is not None
    assert lease.until == NOON + timedelta(seconds=30)


def test_a_reading_costs_a_fixed_number_of_queries_and_asks_no_attempt(
    engine: Engine, count_statements: CountStatements
) -> None:
    given_run(engine, [make_issue(), make_issue("toy-2")], [make_build(), make_build("2.7.0+cu126")], repeat=3)
    given_results(engine)
    with count_statements(engine) as said:
        gauges(engine)
    assert len(said) == 16
    assert not [one for one in said if "FROM attempts" in one or "JOIN attempts" in one]


def test_counters_stay_beside_the_generation(engine: Engine) -> None:
    with unit_of_work(engine) as s:
        counters.count(s, {"a": 2, "b": 1})
        counters.count(s, {"a": 3})
        counters.note_seen(s, "m" * 32, NOON)
        counters.note_seen(s, "", NOON)
    with reading(engine) as s:
        assert counters.load_counters(s) == {
            "a": {(): 5},
            "b": {(): 1},
            "generation": {(): 0},
            "rules": {(): RULES},
            "seen": {("m" * 32,): int(NOON.timestamp())},
        }
    with unit_of_work(engine) as s:
        assert counters.forget_unseen(s, NOON) == 0
        assert counters.forget_unseen(s, NOON + timedelta(seconds=1)) == 1


def test_every_counter_fits_its_column() -> None:
    longest = max(len(counters.named(counters.ATTEMPTS, o.value, c.value)) for o in Outcome for c in TroubleCode)
    assert isinstance(meta.c.name.type, sa.String)
    assert longest <= (meta.c.name.type.length or 0)


def test_steps_of_tend_are_told_by_when_they_last_ended_and_how(engine: Engine) -> None:
    with unit_of_work(engine) as s:
        assert counters.load_tending(s) == counters.Tending((), None)
        for minutes, (step, code) in enumerate([("site", 4), ("discover", 1), ("site", 0)]):
            counters.note_tended(s, step, code, NOON + timedelta(minutes=minutes))
        counters.note_next_round(s, NOON + timedelta(days=1))
    with reading(engine) as s:
        found = counters.load_tending(s)
    assert [(step.name, step.at - NOON, step.code) for step in found.steps] == [
        ("discover", timedelta(minutes=1), 1),
        ("site", timedelta(minutes=2), 0),
    ]
    assert found.next_at == NOON + timedelta(days=1)
