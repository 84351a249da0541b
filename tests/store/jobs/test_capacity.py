"""Which classes have a worker: said anew all the time, and remembered once nobody says so."""

from datetime import timedelta

from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.jobs.job_queue import DISPATCHER
from knowngood.store.jobs.workers import load_offers, offer_classes
from knowngood.store.queries import load_generation, load_lease
from tests.make import HARDWARE, NOON

GPU = "cuda-sm_90"
LATER = NOON + timedelta(seconds=30)


def offer(engine: Engine, *classes: str, at: timedelta = timedelta(0)) -> int:
    with unit_of_work(engine) as s:
        offer_classes(s, classes, "d-1", NOON + at, 30.0)
    with reading(engine) as s:
        return load_generation(s)


def test_an_offer_runs_out_and_tells_when_it_did(engine: Engine) -> None:
    offer(engine, HARDWARE, GPU)
    offer(engine, HARDWARE, at=timedelta(seconds=20))
    with reading(engine) as s:
        assert load_offers(s) == {HARDWARE: NOON + timedelta(seconds=50), GPU: LATER}
        assert load_lease(s, DISPATCHER) is None


def test_pages_are_made_anew_only_when_a_class_comes(engine: Engine) -> None:
    first = offer(engine, HARDWARE)
    assert offer(engine, HARDWARE, at=timedelta(seconds=20)) == first
    assert offer(engine, at=timedelta(seconds=20)) == first
    second = offer(engine, HARDWARE, GPU, at=timedelta(seconds=25))
    assert second > first
    assert offer(engine, GPU, at=timedelta(minutes=9)) > second
