"""The past and lists in parts, on both databases."""

from datetime import timedelta

import pytest

from knowngood.domain.errors import BadRequest, UnknownIssue
from knowngood.domain.measuring.planning import PlanRequest
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.store.engine import Engine, reading
from knowngood.store.evidence import changes
from knowngood.store.evidence.changes import load_cells_at
from knowngood.store.queries import load_cells, load_recent_attempts, load_runs
from tests.fixtures.databases import KINDS, StoreWith
from tests.make import HARDWARE, NOON
from tests.web import given
from tests.web.given import BAD, BUILDS, GOOD, ISSUES, MASK, SILENT, Asked

LATER = NOON + timedelta(hours=1)


def _measured(engine: Engine) -> None:
    given.save(engine, ISSUES, BUILDS)
    given.run(engine, Asked([BAD, GOOD], NOON))


@pytest.fixture(params=KINDS)
def measured_twice(request: pytest.FixtureRequest, store_with: StoreWith) -> Engine:
    return store_with(_measured, request.param)


def test_what_was_stored_then_is_known_then(measured_twice: Engine) -> None:
    with reading(measured_twice) as s:
        then = load_cells(s)
    given.run(measured_twice, Asked([BAD], LATER, wanted=PlanRequest(repeat=2)))
    with reading(measured_twice) as s:
        live = load_cells(s)
        assert live != then
        assert load_cells_at(s, LATER - timedelta(seconds=1)) == then
        assert load_cells_at(s, LATER + timedelta(hours=1)) == live
        assert load_cells_at(s, NOON - timedelta(days=1)) == ()
        some = load_cells_at(s, LATER - timedelta(seconds=1), issues=[MASK.id], builds=[BAD.id], hardware=[HARDWARE])
    assert some == tuple(cell for cell in then if (cell.issue, cell.build) == (MASK.id, BAD.id))


def test_a_past_that_costs_too_much_is_refused_and_a_part_of_it_is_not(
    measured_twice: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    given.run(measured_twice, Asked([BAD], LATER, wanted=PlanRequest(repeat=2)))
    monkeypatch.setattr(changes, "MOST_ATTEMPTS", 5)
    with reading(measured_twice) as s:
        with pytest.raises(BadRequest, match="ask for fewer issues"):
            load_cells_at(s, LATER - timedelta(seconds=1))
        assert load_cells_at(s, LATER - timedelta(seconds=1), issues=[SILENT.id])


def test_attempts_and_runs_go_on_after_the_last_one_told(measured_twice: Engine) -> None:
    given.run(measured_twice, Asked([BAD], LATER, wanted=PlanRequest(repeat=3)))
    with reading(measured_twice) as s:
        whole = load_recent_attempts(s, MASK.id, 1000)
        told: list[str] = []
        after = None
        while part := load_recent_attempts(s, MASK.id, 3, after=after):
            told += [row.attempt.id for row in part]
            after = (part[-1].attempt.finished_at, part[-1].attempt.id)
        runs = load_runs(s, 10)
        assert load_runs(s, 10, after=(runs[0].created_at, runs[0].id)) == runs[1:]
    assert told == [row.attempt.id for row in whole]
    assert len(told) == len(set(told)) > 3


def test_attempts_are_chosen_by_what_they_count_as(measured_twice: Engine) -> None:
    with reading(measured_twice) as s:
        matches = load_recent_attempts(s, MASK.id, 100, counts_as=[Outcome.MATCH])
        assert {row.judgement.outcome for row in matches} == {Outcome.MATCH}
        assert load_recent_attempts(s, MASK.id, 100, builds=[GOOD.id], counts_as=[Outcome.MATCH]) == ()
        assert load_recent_attempts(s, MASK.id, 100, builds=["torch-9.9"]) == ()
        with pytest.raises(UnknownIssue):
            load_recent_attempts(s, "nothing-1", 100)
