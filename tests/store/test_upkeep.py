from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa

from app.domain.outcome import Outcome
from app.domain.verdict import Verdict
from app.store import reads, writes
from app.store.session import Engine, reading, unit_of_work
from app.store.tables import attempts, cells, events, logs, machines, runs
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.store.given import given_catalogue, given_results, given_run

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
        assert writes.reclassify(s, NOON) == ()


def test_reclassifying_mends_what_other_rules_had_derived(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    with reading(engine) as s:
        (right,) = reads.load_cells(s)
    with unit_of_work(engine) as s:
        s.execute(sa.update(cells).values(doc=sa.func.replace(cells.c.doc, "affected", "not_affected")))
    with unit_of_work(engine) as s:
        (change,) = writes.reclassify(s, NOON)
    assert change.verdicts == (Verdict.NOT_AFFECTED, Verdict.AFFECTED)
    with reading(engine) as s:
        assert reads.load_cells(s) == (right,)
        assert s.execute(sa.select(cells.c.verdict)).scalar_one() == "affected"


def test_reclassifying_removes_cells_without_any_evidence(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    with unit_of_work(engine) as s:
        s.execute(sa.delete(attempts))
    with unit_of_work(engine) as s:
        (change,) = writes.reclassify(s, NOON)
    assert change.verdicts == (Verdict.AFFECTED, None)
    assert count(engine, cells) == 0


def test_pruning_never_touches_what_counts(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    with reading(engine) as s:
        before = reads.load_cells(s), reads.load_attempts(s, ISSUE.id, BUILD.id, HARDWARE)
    with unit_of_work(engine) as s:
        report = writes.prune(s, NOON + timedelta(days=3650), superseded_days=30, history_days=30)
    assert (report.attempts, report.logs, report.runs) == (0, 0, 1)
    assert report.events > 0
    with reading(engine) as s:
        assert (reads.load_cells(s), reads.load_attempts(s, ISSUE.id, BUILD.id, HARDWARE)) == before
    assert count(engine, runs) == 0
    assert count(engine, events) == 0


def test_pruning_removes_old_superseded_evidence_with_all_that_hung_on_it(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    changed = replace(ISSUE, arms=tuple(replace(arm, code=f"{arm.id}-2") for arm in ISSUE.arms))
    given_catalogue(engine, [changed], [BUILD])
    with unit_of_work(engine) as s:
        report = writes.prune(s, NOON + timedelta(days=29), superseded_days=30, history_days=3650)
    assert report.attempts == 0
    with unit_of_work(engine) as s:
        report = writes.prune(s, NOON + timedelta(days=31), superseded_days=30, history_days=3650)
    assert (report.attempts, report.logs, report.machines) == (3, 1, 1)
    assert [count(engine, table) for table in (attempts, logs, machines, cells)] == [0, 0, 0, 0]


def test_a_run_that_goes_on_is_never_pruned(engine: Engine) -> None:
    run = given_run(engine)
    with unit_of_work(engine) as s:
        report = writes.prune(s, NOON + timedelta(days=3650), superseded_days=30, history_days=30)
    assert report.runs == 0
    with reading(engine) as s:
        assert reads.load_run(s, run).arms_total == 3


def test_ids_of_pruned_events_are_not_given_out_again(engine: Engine) -> None:
    given_run(engine)
    with reading(engine) as s:
        last = reads.load_last_event(s)
    with unit_of_work(engine) as s:
        writes.prune(s, NOON + timedelta(days=3650), superseded_days=30, history_days=30)
    given_run(engine)
    with reading(engine) as s:
        assert min(event.id for event in reads.load_events(s, 0, None, 100)) > last
