from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa

from knowngood.domain.issue import digest
from knowngood.domain.measuring.job import EnvironmentReady
from knowngood.domain.message import english
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.store import queries
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.evidence.changes import load_news
from knowngood.store.jobs.event_recorder import record_event
from knowngood.store.jobs.job_queue import claim_job
from knowngood.store.maintenance import prune, reclassify
from knowngood.store.tables import attempts, cells, environments, events, locks, logs, machines, runs
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.store.given import (
    HOLDER,
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


def count(engine: Engine, table: sa.Table) -> int:
    with reading(engine) as s:
        n: int = s.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
    return n


@pytest.mark.parametrize("baseline", [Outcome.MATCH, Outcome.PASS, Outcome.TIMEOUT, Outcome.ENV_ERROR])
def test_reclassifying_right_after_a_run_finds_nothing(engine: Engine, baseline: Outcome) -> None:
    given_run(engine, [ISSUE, make_issue("toy-2")], [BUILD, make_build("2.7.0+cu126")])
    given_results(engine, baseline)
    with unit_of_work(engine) as s:
        assert reclassify(s, NOON) == ()


def test_reclassifying_mends_what_other_rules_had_derived(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    with reading(engine) as s:
        (right,) = queries.load_cells(s)
    with unit_of_work(engine) as s:
        s.execute(sa.update(cells).values(doc=sa.func.replace(cells.c.doc, "affected", "not_affected")))
    with unit_of_work(engine) as s:
        (change,) = reclassify(s, NOON)
    assert change.verdicts == (Verdict.NOT_AFFECTED, Verdict.AFFECTED)
    with reading(engine) as s:
        assert queries.load_cells(s) == (right,)
        assert s.execute(sa.select(cells.c.verdict)).scalar_one() == "affected"


def test_reclassifying_removes_cells_without_any_evidence(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    with unit_of_work(engine) as s:
        s.execute(sa.delete(attempts))
    with unit_of_work(engine) as s:
        (change,) = reclassify(s, NOON)
    assert change.verdicts == (Verdict.AFFECTED, None)
    assert count(engine, cells) == 0


def test_pruning_never_touches_what_counts(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    with reading(engine) as s:
        before = queries.load_cells(s), queries.load_attempts(s, ISSUE.id, BUILD.id, HARDWARE)
    with unit_of_work(engine) as s:
        report = prune(s, NOON + timedelta(days=3650), superseded_days=30, history_days=30)
    assert (report["attempts"].rows, report["logs"].rows, report["locks"].rows, report["machines"].rows) == (0, 0, 0, 0)
    assert report["events"].rows > 0
    with reading(engine) as s:
        assert (queries.load_cells(s), queries.load_attempts(s, ISSUE.id, BUILD.id, HARDWARE)) == before


def test_what_is_told_of_changes_stays_with_the_runs_it_names(engine: Engine) -> None:
    run = given_run(engine)
    given_results(engine)
    again = given_run(engine, repeat=2)
    given_results(engine)  # the same verdict: nothing changed
    with reading(engine) as s:
        before = load_news(s, 100)
    assert {one.run for one in before} == {run}
    with unit_of_work(engine) as s:
        report = prune(s, NOON + timedelta(days=3650), superseded_days=30, history_days=30)
    assert (report["runs"].rows, report["jobs"].rows, report["arms"].rows) == (1, 1, 6)
    with reading(engine) as s:
        assert load_news(s, 100) == before
        assert [one.id for one in queries.load_runs(s, 10)] == [run]
        assert again not in {one.run for one in queries.load_events(s, 0, None, 100) if one.kind == "arm_finished"}


def superseding(engine: Engine, *, machines_seen: int = 1) -> None:
    """Three attempts on each of so many machines, and the repro changed since."""
    for number in range(machines_seen):
        given_run(engine, repeat=number + 1)
        machine = replace(MACHINE, cores=number + 1)
        while True:
            with unit_of_work(engine) as s:
                spec = claim_job(s, HOLDER, NOON, 30.0)
            if spec is None:
                break
            with unit_of_work(engine) as s:
                record_event(s, replace(started(spec), machine=machine), NOON)
                for arm in spec.arms:
                    outcome = Outcome.MATCH if arm.arm == "baseline" else Outcome.PASS
                    event = replace(finished(spec, arm, outcome, log=f"log of {arm.attempt}"), machine=machine.digest)
                    record_event(s, event, NOON)
                record_event(s, ended(spec), NOON)
    given_catalogue(engine, [CHANGED_ISSUE], [BUILD])


CHANGED_ISSUE = replace(ISSUE, arms=tuple(replace(arm, code=f"{arm.id}-2") for arm in ISSUE.arms))


def test_of_superseded_evidence_the_newest_of_each_machine_stays_whole(engine: Engine) -> None:
    superseding(engine, machines_seen=2)
    with reading(engine) as s:
        (before,) = queries.load_cells(s)
    with unit_of_work(engine) as s:
        report = prune(s, NOON + timedelta(days=29), superseded_days=30, history_days=3650)
    assert report["attempts"].rows == report["logs"].rows == 0
    with unit_of_work(engine) as s:
        report = prune(s, NOON + timedelta(days=31), superseded_days=30, history_days=3650)
    assert report["attempts"].rows == report["logs"].rows == 3 + 6 - 2
    assert report["attempts"].size > report["logs"].size > 0
    assert [count(engine, table) for table in (attempts, logs, machines, cells)] == [2, 2, 2, 1]
    with reading(engine) as s:
        (after,) = queries.load_cells(s)
    assert after == replace(before, superseded=2)


def test_logs_of_superseded_attempts_go_before_the_attempts(engine: Engine) -> None:
    superseding(engine)
    with reading(engine) as s:
        before = queries.load_attempts(s, ISSUE.id, BUILD.id, HARDWARE)
    with unit_of_work(engine) as s:
        report = prune(s, NOON + timedelta(days=31), superseded_days=90, history_days=90, logs_days=30)
    assert (report["attempts"].rows, report["logs"].rows) == (0, 2)
    with reading(engine) as s:
        assert queries.load_attempts(s, ISSUE.id, BUILD.id, HARDWARE) == before  # what was found in them is kept
    with unit_of_work(engine) as s:
        s.execute(sa.update(attempts).values(searched=None))  # as of a release that kept none
        s.execute(sa.delete(logs))  # whose log is kept whole is left to chance: all ended at one time
    with reading(engine) as s:
        told = queries.load_attempts(s, ISSUE.id, BUILD.id, HARDWARE)
    assert len([one for one in told if "judged without its log" in english(one.judgement.reason)]) == 1  # that needs it


def test_a_log_that_counts_elsewhere_is_kept(engine: Engine) -> None:
    """Equal logs are stored once: one attempt is superseded, the other counts."""
    other = make_issue("toy-2")
    given_run(engine, [ISSUE, other])
    given_results(engine, log="the same of both")
    given_catalogue(engine, [CHANGED_ISSUE, other], [BUILD])
    with unit_of_work(engine) as s:
        report = prune(s, NOON + timedelta(days=31), superseded_days=30, history_days=30)
    assert (report["attempts"].rows, report["logs"].rows) == (2, 0)
    assert count(engine, logs) == 1


def test_evidence_of_issues_that_the_catalogue_lacks_waits_for_them(engine: Engine) -> None:
    other = make_issue("toy-2")
    given_run(engine, [ISSUE, other])
    given_results(engine)
    given_catalogue(engine, [other], [BUILD])  # the folder of a team's own issues was left out
    with unit_of_work(engine) as s:
        assert prune(s, NOON + timedelta(days=999), superseded_days=1, history_days=1)["attempts"].rows == 0
    given_catalogue(engine, [ISSUE, other], [BUILD])
    with reading(engine) as s:
        assert {cell.verdict for cell in queries.load_cells(s)} == {Verdict.AFFECTED}


def test_what_a_job_at_work_has_made_is_kept(engine: Engine) -> None:
    """Its environment's lock is there before the first attempt that names it."""
    given_run(engine)
    spec = claim(engine)
    with unit_of_work(engine) as s:
        record_event(s, started(spec), NOON)
        ready = EnvironmentReady(spec.job, spec.try_no, "lock", digest("lock"), {"torch": "2.6.0"}, {}, 1.0)
        record_event(s, ready, NOON)
    with unit_of_work(engine) as s:
        report = prune(s, NOON + timedelta(days=999), superseded_days=1, history_days=1)
    assert (report["locks"].rows, report["machines"].rows, report["events"].rows) == (0, 0, 0)
    assert [count(engine, table) for table in (locks, environments, machines)] == [1, 1, 1]


def test_a_pruning_that_is_rolled_back_has_told_and_removed_nothing(engine: Engine) -> None:
    superseding(engine)
    every = (attempts, logs, machines, events, runs)
    before = [count(engine, table) for table in every]
    with suppress(ZeroDivisionError), unit_of_work(engine) as s:
        told = prune(s, NOON + timedelta(days=31), superseded_days=30, history_days=30)
        raise ZeroDivisionError
    assert [count(engine, table) for table in every] == before
    with unit_of_work(engine) as s:
        assert prune(s, NOON + timedelta(days=31), superseded_days=30, history_days=30) == told


def test_a_run_that_goes_on_is_never_pruned(engine: Engine) -> None:
    run = given_run(engine)
    with unit_of_work(engine) as s:
        report = prune(s, NOON + timedelta(days=3650), superseded_days=30, history_days=30)
    assert (report["runs"].rows, report["events"].rows) == (0, 0)
    with reading(engine) as s:
        assert queries.load_run(s, run).arms_total == 3


def test_ids_of_pruned_events_are_not_given_out_again(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    with reading(engine) as s:
        last = queries.load_last_event(s)
        kept = {event.id for event in queries.load_events(s, 0, None, 100)}
    with unit_of_work(engine) as s:
        assert prune(s, NOON + timedelta(days=3650), superseded_days=30, history_days=30)["events"].rows
    given_run(engine)
    with reading(engine) as s:
        new = [event.id for event in queries.load_events(s, 0, None, 100) if event.id not in kept]
    assert new
    assert min(new) > last
