"""What the gate knows while the store cannot be followed: said, counted, and no answer any more after a while."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from app.domain.access import Actor
from app.domain.errors import StoreUnusable
from app.domain.policy import Watch
from app.domain.watch_list import Content
from app.store.cells import touch
from app.store.session import Engine, unit_of_work
from app.store.tables import watch_list_versions
from app.store.watch import Keeper, save_watch_list
from app.web.known import Knowledge
from tests.web import given
from tests.web.asking import client_of
from tests.web.given import BAD, BUILDS, DYNAMO, ISSUES, NOW

GATE = f"/api/v1/gate?build={BAD.id.replace('+', '%2B')}&issues={DYNAMO.id}"


@pytest.fixture
def store(own_engine: Engine) -> Engine:
    given.save(own_engine, ISSUES, BUILDS)
    with unit_of_work(own_engine) as s:
        content = Content(Watch(issues=(DYNAMO.id,)))
        save_watch_list(s, "mine", content, by=Keeper(Actor("ada")), now=NOW)
    return own_engine


def write(engine: Engine, doc: str) -> None:
    """A row as nobody here writes it, in a store that has moved."""
    with unit_of_work(engine) as s:
        touch(s)
        s.execute(sa.update(watch_list_versions).values(doc=doc))


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


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
    knowledge = Knowledge(store, clock.now, on_failure=lambda: failures.append(1), monotonic=clock.monotonic)
    first = knowledge.now()
    assert (knowledge.known_at, knowledge.is_behind) == (clock.now(), False)
    known_at = clock.now()
    write(store, "{")
    clock.s += 10
    assert knowledge.now() is first
    until(lambda: bool(failures))
    assert (knowledge.known_at, knowledge.is_behind, knowledge.at_hand()) == (known_at, True, None)
    settle()
    clock.s += 1
    assert knowledge.now() is first
    assert len(failures) == 1, "it is not tried at every request"
    clock.s += 400
    with pytest.raises(StoreUnusable):
        knowledge.now()
    until(lambda: len(failures) == 2)
    settle()
    write(store, "{}")
    clock.s += 10
    with suppress(StoreUnusable):  # it is not waited for
        knowledge.now()
    until(lambda: not knowledge.is_behind)
    assert knowledge.now().generation > first.generation
    assert knowledge.known_at == clock.now()


def settle() -> None:
    """Until the thread that follows the store has come to its end."""
    until(lambda: not any(one.name == "knowledge" for one in threading.enumerate()))


def test_a_store_that_cannot_be_read_from_the_start_is_tried_again(store: Engine) -> None:
    write(store, "{")
    client = client_of(store)
    assert [client.get(address).status_code for address in (GATE, "/readyz", "/healthz")] == [503, 503, 200]
    write(store, "{}")
    assert [client.get(address).status_code for address in (GATE, "/readyz")] == [200, 200]


def test_who_watches_the_server_sees_that_the_gate_is_behind(store: Engine) -> None:
    client = client_of(store)
    assert client.get(GATE).json()["known_at"] == NOW.isoformat().replace("+00:00", "Z")
    assert client.get("/readyz").json() == {"status": "ready"}
    write(store, "{")
    until(lambda: client.get("/readyz").json()["status"] != "ready")
    answer = client.get("/readyz")
    assert (answer.status_code, "nothing newer than" in answer.json()["status"]) == (200, True)
    assert client.get(GATE).status_code == 200
    assert failures_of(client) >= 1


def failures_of(client: TestClient) -> float:
    samples = [one for family in text_string_to_metric_families(client.get("/metrics").text) for one in family.samples]
    return next(one.value for one in samples if one.name == "knowngood_refresh_failures_total")
