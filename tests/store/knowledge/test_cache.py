"""Knowledge while the store cannot be followed: said, counted, and no answer any more after a while."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from knowngood.domain.errors import StoreUnusable
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.evidence.cells import touch
from knowngood.store.knowledge.cache import KnowledgeCache
from knowngood.store.knowledge.loader import KnowledgeSnapshot
from knowngood.store.tables import issues
from tests.waiting import eventually
from tests.web import given
from tests.web.asking import client_of
from tests.web.given import BAD, BUILDS, DYNAMO, ISSUES, MASK, NOW

GATE = f"/api/v1/gate?build={BAD.id.replace('+', '%2B')}&issues={DYNAMO.id}"


@pytest.fixture
def store(own_engine: Engine) -> Engine:
    given.save(own_engine, ISSUES, BUILDS)
    return own_engine


def spoil(engine: Engine) -> None:
    """A row as nobody here writes it, in a store that has moved."""
    _write(engine, doc="{" + issues.c.doc, revision="spoilt")


def mend(engine: Engine) -> None:
    _write(engine, doc=sa.func.substr(issues.c.doc, 2), revision="mended")


def _write(engine: Engine, **values: Any) -> None:
    with unit_of_work(engine) as s:
        touch(s)
        s.execute(sa.update(issues).where(issues.c.id == MASK.id).values(values))


def until(is_so: Callable[[], bool]) -> None:
    assert eventually(is_so)


class Clock:
    """Moved by hand: for people as a date, for waiting in seconds."""

    def __init__(self) -> None:
        self.s = 1000.0

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.s)

    def monotonic(self) -> float:
        return self.s


def test_a_row_that_cannot_be_read_is_told_counted_and_ends_in_no_answer(store: Engine) -> None:
    """The thread that followed the store died of it, and the gate answered from then on with `known_at` = now."""
    clock, failures = Clock(), list[int]()
    knowledge = KnowledgeCache(store, clock.now, on_failure=lambda: failures.append(1), monotonic=clock.monotonic)
    first = knowledge.now()
    assert (knowledge.known_at, knowledge.is_behind) == (clock.now(), False)
    known_at = clock.now()
    spoil(store)
    clock.s += 10
    assert knowledge.now() == first
    until(lambda: bool(failures))
    assert (knowledge.known_at, knowledge.is_behind, knowledge.at_hand()) == (known_at, True, None)
    settle()
    clock.s += 1
    assert knowledge.now() == first
    assert len(failures) == 1, "it is not tried at every request"
    clock.s += 400
    with pytest.raises(StoreUnusable):
        knowledge.now()
    until(lambda: len(failures) == 2)
    settle()
    mend(store)
    clock.s += 10
    with suppress(StoreUnusable):  # it is not waited for
        knowledge.now()
    until(lambda: not knowledge.is_behind)
    assert knowledge.now().generation > first.generation
    assert knowledge.known_at == clock.now()


def test_what_stands_in_answers_until_the_store_is_filled(store: Engine) -> None:
    cache = KnowledgeCache(store, Clock().now)
    stored = cache.now()
    instead = replace(stored, knowledge=replace(stored.knowledge, tested=frozenset({"another"})))
    cache.instead = instead
    with reading(store) as s:
        assert [cache.now(), cache.load(s, NOW), cache.at_hand()] == [instead] * 3
    cache.instead = None
    assert cache.now().knowledge.tested == stored.knowledge.tested != instead.knowledge.tested


def test_the_first_answer_after_a_long_failure_is_made_of_what_was_stored_meanwhile(store: Engine) -> None:
    clock = Clock()
    knowledge = KnowledgeCache(store, clock.now, monotonic=clock.monotonic)
    first = knowledge.now()
    spoil(store)
    clock.s += 10
    knowledge.now()
    settle()
    assert knowledge.is_behind
    mend(store)
    clock.s += 400
    try:
        answer = knowledge.now()
    except StoreUnusable:  # reading takes longer than anybody waits for it
        settle()
        answer = knowledge.now()
    assert answer.generation > first.generation


def test_a_first_reading_that_failed_is_not_tried_again_at_every_request(store: Engine) -> None:
    clock, failures = Clock(), list[int]()
    knowledge = KnowledgeCache(store, clock.now, on_failure=lambda: failures.append(1), monotonic=clock.monotonic)
    spoil(store)
    for _ in range(3):
        with pytest.raises(StoreUnusable):
            knowledge.now()
    assert len(failures) == 1
    mend(store)
    clock.s += 10
    assert knowledge.now().generation
    assert not knowledge.is_behind


class Overtaken(KnowledgeCache):
    """Another request while this one's answer is made: the store has moved, and is followed."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        super().__init__(engine, clock.now, monotonic=clock.monotonic)
        self._store, self._time = engine, clock

    def now(self) -> KnowledgeSnapshot:
        snapshot = super().now()
        with unit_of_work(self._store) as s:
            touch(s)
        self._time.s += 10
        until(lambda: KnowledgeCache.now(self).generation > snapshot.generation)
        return snapshot


def test_an_answer_tells_the_time_of_what_it_is_made_of_and_not_of_what_is_known_since(store: Engine) -> None:
    client, clock = client_of(store), Clock()
    client.app.state.state = replace(client.app.state.state, knowledge=Overtaken(store, clock))  # type: ignore[attr-defined]
    began = clock.now()
    assert datetime.fromisoformat(client.get(GATE).json()["known_at"]) == began
    assert clock.now() > began


def settle() -> None:
    """Until the thread that follows the store has come to its end."""
    until(lambda: not any(one.name == "knowledge" for one in threading.enumerate()))


@pytest.mark.system
def test_a_store_that_cannot_be_read_from_the_start_is_tried_again(store: Engine) -> None:
    spoil(store)
    client = client_of(store)
    assert [client.get(address).status_code for address in (GATE, "/readyz", "/healthz")] == [503, 503, 200]
    mend(store)
    until(lambda: client.get(GATE).status_code == 200)
    assert client.get("/readyz").status_code == 200


def test_who_watches_the_server_sees_that_the_gate_is_behind(store: Engine) -> None:
    client = client_of(store)
    assert client.get(GATE).json()["known_at"] == NOW.isoformat().replace("+00:00", "Z")
    assert client.get("/readyz").json() == {"status": "ready"}
    spoil(store)
    until(lambda: client.get("/readyz").json()["status"] != "ready")
    answer = client.get("/readyz")
    assert (answer.status_code, "nothing newer than" in answer.json()["status"]) == (200, True)
    assert client.get(GATE).status_code == 200
    assert failures_of(client) >= 1


def failures_of(client: TestClient) -> float:
    samples = [one for family in text_string_to_metric_families(client.get("/metrics").text) for one in family.samples]
    return next(one.value for one in samples if one.name == "knowngood_refresh_failures_total")
