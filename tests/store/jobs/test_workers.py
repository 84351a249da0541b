"""Who measured and who does now, read back from jobs and attempts."""

from datetime import timedelta

from knowngood.domain.measuring.job import LOCAL
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.jobs.event_recorder import record_event
from knowngood.store.jobs.workers import load_doing, load_machines, load_queued, load_stays, load_tallies
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.store.given import MACHINE, claim, finished, given_results, given_run, running, started

ISSUE = make_issue("toy-1", workarounds=())
BUILDS = [make_build("2.6.0+cu124"), make_build("2.7.0+cu126")]


def test_an_empty_store_knows_of_no_machine(engine: Engine) -> None:
    with reading(engine) as s:
        assert (load_tallies(s), load_machines(s), load_doing(s, NOON), load_queued(s)) == ((), {}, (), {})
        assert load_stays(s, NOON) == ()


def test_what_machines_did_is_counted_and_what_is_older_than_the_window_is_no_stay(engine: Engine) -> None:
    given_run(engine, [ISSUE], BUILDS)
    given_results(engine)
    with reading(engine) as s:
        (tally,) = load_tallies(s)
        assert load_machines(s) == {MACHINE.digest: MACHINE}
        assert len(load_stays(s, NOON)) == 4
        assert load_stays(s, NOON + timedelta(minutes=1)) == ()
    assert (tally.machine, tally.hardware, tally.arms, tally.origins) == (MACHINE.digest, HARDWARE, 4, (LOCAL,))
    assert tally.last_at == NOON + timedelta(seconds=5)


def test_what_a_machine_does_now_is_told_arm_by_arm_and_what_waits_is_counted(engine: Engine) -> None:
    run = given_run(engine, [ISSUE], BUILDS)
    with reading(engine) as s:
        assert load_queued(s) == {HARDWARE: 2}
    spec = claim(engine)
    with reading(engine) as s:
        (begun,) = load_doing(s, NOON)
    assert (begun.machine, begun.arms, begun.is_held) == ("", (), True)
    with unit_of_work(engine) as s:
        record_event(s, started(spec), NOON)
        record_event(s, finished(spec, spec.arms[0], Outcome.PASS), NOON)
        record_event(s, running(spec, spec.arms[1]), NOON)
    with reading(engine) as s:
        (doing,) = load_doing(s, NOON)
        (late,) = load_doing(s, NOON + timedelta(minutes=1))
        assert load_queued(s) == {HARDWARE: 1}
    assert (doing.run, doing.machine, doing.build) == (run, MACHINE.digest, spec.build.id)
    assert (doing.arms, doing.done, doing.total) == ((f"toy-1 {spec.arms[1].arm}",), 1, 2)
    assert (doing.is_held, late.is_held) == (True, False)
