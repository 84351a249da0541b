"""One store, moved: whatever is asked of it, the answer from PostgreSQL is the answer from SQLite, byte for byte.

The rooms above the store run their tests on one database (tests/fixtures/databases.py); here each of their doors is
opened once on both.
"""

from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from knowngood.app.domain.access import Actor
from knowngood.app.features.backup.store import back_up, restore
from knowngood.app.features.exports.formats import Format
from knowngood.app.store.engine import Engine, connect
from tests.fixtures.databases import KINDS, NewStore
from tests.make import NOON
from tests.web.asking import app_of, client_of
from tests.web.given import BAD, GOOD, MASK, fill
from tests.web.notebooks import addresses_of, sign_in

BY = Actor("somebody")


@pytest.fixture(scope="module")
def clients(store_on: NewStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, TestClient]]:
    """Somebody signed in who may do everything, before each of two stores that were restored from one backup."""
    origin = connect(store_on("sqlite"))
    fill(origin)
    token = sign_in(origin)
    backup = tmp_path_factory.mktemp("moved") / "store.backup"
    with backup.open("wb") as file:
        back_up(origin, file, now=NOON, release="0.1.0")
    engines = {kind: connect(store_on(kind)) for kind in KINDS}
    for engine in engines.values():
        restore(engine, backup, by=BY, now=NOON)
    yield {kind: _signed_in(engine, token) for kind, engine in engines.items()}
    for engine in (origin, *engines.values()):
        engine.dispose()


def _signed_in(engine: Engine, token: str) -> TestClient:
    client = client_of(engine)
    client.headers["Authorization"] = f"Bearer {token}"
    return client


# What a read of the API needs to be asked with, beside the names of things in its path.
_ASKED = {
    "/api/v1/gate": f"?build={quote(BAD.id)}&issues={MASK.id}",
    "/api/v1/matrix": "?columns=all",
    "/api/v1/attempts": f"?issue={MASK.id}",
    "/api/v1/compare": f"?a={quote(BAD.id)}&b={quote(GOOD.id)}",
    "/api/v1/upgrade": f"?from={quote(BAD.id)}&watch=vision-team&enough=50",
}
_NEVER_ENDS = "/api/v1/events"
_OF_THIS_PROCESS = ("/metrics", "/healthz", "/readyz")
_OTHER_FORMATS = ("/feeds/changes.atom", f"/badge/{MASK.id}.svg", "/openapi.json")


def reads_of(client: TestClient) -> list[str]:
    """Every page of the application with something to show, and every read of its API."""
    names = {"issue": MASK.id, "build": BAD.id, "name": "vision-team", "run": _first(client, "runs")}
    names["attempt"] = _first(client, f"attempts?issue={MASK.id}")
    found = list(addresses_of(client).values())
    for path, ways in app_of(client).openapi()["paths"].items():
        if "get" not in ways or path == _NEVER_ENDS or path.startswith(_OF_THIS_PROCESS):
            continue
        address = path.replace("/docs/{name}", "/docs/api")
        for name, value in names.items():
            address = address.replace(f"{{{name}}}", quote(value, safe=""))
        found += [address.replace("{format}", form) + _ASKED.get(path, "") for form in _formats(address)]
    return [*found, *_OTHER_FORMATS]


def _first(client: TestClient, what: str) -> str:
    listed = client.get(f"/api/v1/{what}").json()[what.partition("?")[0]]
    return str(listed[0]["id"])


def _formats(address: str) -> list[str]:
    return [form.value for form in Format] if "{format}" in address else [""]


def test_every_read_gives_the_same_bytes(clients: dict[str, TestClient]) -> None:
    here, there = clients["sqlite"], clients["postgresql"]
    told = {address: (here.get(address), there.get(address)) for address in reads_of(here)}
    refused = [address for address, (one, _) in told.items() if one.status_code != HTTPStatus.OK]
    assert refused == ["/issues/nothing-like-it"], "a read that is refused shows nothing of the store"
    assert [
        a for a, (one, other) in told.items() if (one.status_code, one.content) != (other.status_code, other.content)
    ] == []
