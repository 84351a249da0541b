"""Cells that are queued or being measured are known to wait, on both databases."""

from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import CellPlace
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.jobs.event_recorder import record_event
from knowngood.store.jobs.job_queue import cancel_run
from knowngood.store.jobs.workers import load_waiting_cells
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.store.given import claim, ended, finished, given_run, started

FIRST, SECOND = make_issue("toy-1"), make_issue("toy-2")
BUILD = make_build()


def waiting(engine: Engine) -> frozenset[CellPlace]:
    with reading(engine) as s:
        return load_waiting_cells(s)


def test_cells_wait_from_the_queue_to_their_last_result(engine: Engine) -> None:
    assert waiting(engine) == frozenset()
    given_run(engine, [FIRST, SECOND], [BUILD])
    cells = {("toy-1", BUILD.id, HARDWARE), ("toy-2", BUILD.id, HARDWARE)}
    assert waiting(engine) == cells
    spec = claim(engine)
    assert waiting(engine) == cells, "what is being measured waits too"
    with unit_of_work(engine) as s:
        record_event(s, started(spec), NOON)
        for arm in spec.arms:
            if arm.issue == "toy-1":
                record_event(s, finished(spec, arm, Outcome.PASS), NOON)
    assert waiting(engine) == {("toy-2", BUILD.id, HARDWARE)}
    with unit_of_work(engine) as s:
        for arm in spec.arms:
            if arm.issue == "toy-2":
                record_event(s, finished(spec, arm, Outcome.PASS), NOON)
        record_event(s, ended(spec), NOON)
    assert waiting(engine) == frozenset()


def test_what_was_cancelled_waits_no_more(engine: Engine) -> None:
    run = given_run(engine, [FIRST], [BUILD])
    with unit_of_work(engine) as s:
        cancel_run(s, run, NOON)
    assert waiting(engine) == frozenset()
