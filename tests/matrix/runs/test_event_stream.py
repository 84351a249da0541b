"""The event stream: everything once, in order, from where the reader was."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from knowngood.matrix.runs import api
from knowngood.store.engine import Engine
from knowngood.store.records import EventRow
from tests.web import given
from tests.web.asking import client_state


def stream(client: TestClient, address: str, **headers: str) -> list[tuple[int, Any]]:
    """The events of a stream that ends by itself, as (id, data)."""
    response = client.get(address, headers=headers)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-cache"
    told = []
    for block in filter(None, response.text.split("\n\n")):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        told.append((int(fields["id"]), json.loads(fields["data"])))
    return told


@pytest.fixture
def finished(client: TestClient) -> str:
    return str(client.get("/api/v1/runs").json()["runs"][0]["id"])


def test_a_finished_run_is_told_from_its_beginning_and_ends(client: TestClient, finished: str) -> None:
    told = stream(client, f"/api/v1/events?run={finished}&after=0")
    kinds = [data["kind"] for _, data in told]
    assert (kinds[0], kinds[-1]) == ("run_created", "run_finished")
    assert [id_ for id_, _ in told] == sorted({id_ for id_, _ in told})
    assert all(TypeAdapter(EventRow).validate_python(data).run == finished for _, data in told)


def test_a_reader_that_comes_back_gets_what_it_missed(client: TestClient, finished: str) -> None:
    told = stream(client, f"/api/v1/events?run={finished}&after=0")
    seen = told[3][0]
    again = stream(client, f"/api/v1/events?run={finished}&after=0", **{"Last-Event-ID": str(seen)})
    assert again == told[4:]


def test_without_a_place_the_stream_begins_now(client: TestClient, finished: str) -> None:
    assert stream(client, f"/api/v1/events?run={finished}") == []


def test_more_events_than_one_look_takes_are_all_sent(
    client: TestClient, finished: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = stream(client, f"/api/v1/events?run={finished}&after=0")
    monkeypatch.setattr(api, "_AT_ONCE", 2)
    assert stream(client, f"/api/v1/events?run={finished}&after=0") == whole


@pytest.mark.parametrize(
    ("query", "status"), [("run=nothing", 404), ("after=-1", 422), ("after=x", 422), (f"run={'x' * 300}", 422)]
)
def test_a_stream_that_cannot_be_is_refused_before_it_begins(client: TestClient, query: str, status: int) -> None:
    response = client.get(f"/api/v1/events?{query}")
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"


def test_there_is_an_end_to_how_many_streams_are_open(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    client_state(own).streams.count = 100
    response = own.get("/api/v1/events")
    assert response.status_code == 503
    assert "/api/v1/runs" in response.json()["detail"]


def test_one_address_cannot_have_them_all(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    client_state(own).streams.by_asker.update({"testclient": 20, "10.0.0.1": 40})
    response = own.get("/api/v1/events")
    assert (response.status_code, response.headers["retry-after"]) == (429, "10")
    assert "from your address" in response.json()["detail"]
    assert TestClient(own.app, client=("10.0.0.2", 1)).get("/api/v1/events?run=x").status_code == 404


def test_a_stream_that_ended_is_not_counted_any_more(client: TestClient, finished: str) -> None:
    stream(client, f"/api/v1/events?run={finished}&after=0")
    assert client_state(client).streams.count == 0
    assert not client_state(client).streams.by_asker
