"""A row that cannot be read is left out, told and counted, and everything else is answered.

For each column that is parsed, one row is damaged and every address that can be read is asked.
"""

import html
from urllib.parse import quote

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from knowngood.domain.access import Scope
from knowngood.domain.issue_selectors import Watch, WatchListContent
from knowngood.share.exports.formats import Format
from knowngood.store import unreadable
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.evidence.cells import touch
from knowngood.store.tables import Json, metadata
from knowngood.web.urls import MATRIX
from tests.make import HARDWARE
from tests.web import given
from tests.web.asking import address_of, bearer, client_of, every_path
from tests.web.given import BAD, DYNAMO, GOOD, MASK, NOW, OLD, make_token
from tests.web.signed_in import signed_in

NO_JSON, OTHER_JSON, NO_BYTES = "{", "7", b"\x00nothing that was packed"

# The row of each table that the addresses below are about.
OF_CELL = f"issue = '{MASK.id}' AND build = '{BAD.id}'"
ROWS = {
    "issues.doc": f"id = '{MASK.id}'",
    "issue_revisions.doc": f"issue = '{MASK.id}'",
    "builds.doc": f"id = '{BAD.id}'",
    "machines.doc": "digest <> ''",
    "cells.doc": OF_CELL,
    "attempts.record": OF_CELL,
    "attempts.searched": OF_CELL,
    "attempts.labels": OF_CELL,
    "logs.zlib": "digest <> ''",
    "locks.zlib": "digest <> ''",
    "environments.packages": "lock_digest <> ''",
    "environments.imported": "lock_digest <> ''",
    "watch_list_versions.doc": "name = 'vision-team'",
    "runs.request": "id <> ''",
    "jobs.request": "id <> ''",
    "events.data": "kind = 'cell_changed'",
    "audit.data": "id > 0",
    "tokens.scopes": "name = 'ci'",
}
KNOWS_THE_GATE = (
    "/api/v1/gate",
    "/readyz",
    "/e",
    "/errors",
    "/api/v1/errors",
    "/environment",
    "/api/v1/environment",
    "/upgrade",
    "/api/v1/upgrade",
    "/upgrade.md",
)
"""What is answered from all that the gate knows, or not at all."""

GATE_NEEDS = {"issues.doc", "builds.doc"}


def damage(engine: Engine, place: str, value: str | bytes) -> None:
    """Write what nobody here writes into one row, in a store that has moved."""
    table, column = place.split(".")
    kind = metadata.tables[table].c[column].type
    given = "CAST(:value AS JSON)" if isinstance(kind, Json) and engine.dialect.name == "postgresql" else ":value"
    with unit_of_work(engine) as s:
        touch(s)
        statement = sa.text(f"UPDATE {table} SET {column} = {given} WHERE {ROWS[place]}")  # noqa: S608 - words of ours
        assert s.execute(statement, {"value": value}).rowcount


def values_for(engine: Engine, place: str) -> list[str | bytes]:
    table, column = place.split(".")
    kind = metadata.tables[table].c[column].type
    if isinstance(kind, sa.LargeBinary):
        return [NO_BYTES]
    if isinstance(kind, sa.Text):
        return [NO_JSON]
    return [OTHER_JSON] if engine.dialect.name == "postgresql" else [NO_JSON, OTHER_JSON]


def addresses(engine: Engine) -> list[str]:
    """Of all that can be read, also with questions that leave the shortest way."""
    with reading(engine) as s:
        attempt = s.execute(sa.text(f"SELECT id FROM attempts WHERE {OF_CELL} ORDER BY id")).scalars().first()  # noqa: S608
        run = s.execute(sa.text("SELECT id FROM runs ORDER BY id")).scalars().first()
    named = {
        "issue": MASK.id,
        "build": BAD.id,
        "attempt": str(attempt),
        "run": str(run),
        "name:path": "api",
        "line": "2.7",
        "component:path": MASK.component,
    }
    found = set()
    for path in every_path(client_of(engine)):
        filled = path.replace("{name}", "vision-team")
        for name, value in named.items():
            filled = filled.replace(f"{{{name}}}", quote(value, safe=""))
        found.add(address_of(filled))
    found |= {f"/api/v1/export/{form}" for form in Format}
    pair = f"a={quote(BAD.id)}&b={quote(GOOD.id)}"
    asked = f"from={quote(OLD.id)}&issues={MASK.id}"
    cell = f"{MASK.id}/{quote(BAD.id)}?hardware={HARDWARE}"
    ago = quote((NOW.replace(hour=12, minute=30)).isoformat())
    return sorted(
        found
        | {f"/compare?{pair}", f"/compare.md?{pair}", f"/api/v1/compare?{pair}", f"/upgrade?{asked}"}
        | {f"/api/v1/upgrade?{asked}", f"/upgrade.md?{asked}", f"/api/v1/gate?build={quote(BAD.id)}&issues={MASK.id}"}
        | {f"/api/v1/gate?build={quote(BAD.id)}&issues={DYNAMO.id}", "/api/v1/gate?build=2.7.1&watch=vision-team"}
        | {f"/api/v1/attempts?issue={MASK.id}", "/api/v1/matrix?columns=all", f"{MATRIX}?columns=all&q=affected"}
        | {f"/api/v1/matrix?at={ago}", f"/api/v1/cells/{cell}&at={ago}", f"/cells/{cell}", f"/api/v1/cells/{cell}"}
        | {"/watchlists/vision-team?version=1", "/changes?watch=vision-team", "/changes?first=true"}
    )


def failed(client: TestClient, secret: str, place: str, asked: list[str]) -> dict[str, int]:
    """The addresses with an answer that no damaged row excuses."""
    quiet = TestClient(client.app, raise_server_exceptions=False, follow_redirects=False, cookies=client.cookies)
    found = {}
    for address in asked:
        headers = bearer(secret) if address.startswith("/api/") else {}
        status = quiet.get(address, headers=headers).status_code
        is_the_gate = status == 503 and place in GATE_NEEDS and address.partition("?")[0] in KNOWS_THE_GATE
        if status >= 500 and not is_the_gate:
            found[address] = status
    return found


def test_everything_that_is_parsed_is_damaged_here() -> None:
    parsed = {f"{table.name}.{c.name}" for table in metadata.sorted_tables for c in table.c if _is_parsed(c)}
    assert parsed | {"attempts.record", "attempts.searched", "jobs.request"} == set(ROWS)


def _is_parsed(column: sa.Column[object]) -> bool:
    return column.name == "doc" or isinstance(column.type, sa.LargeBinary | Json)


@pytest.mark.sample(4, "soak")
@pytest.mark.parametrize(
    ("place", "values"),
    [
        *(pytest.param(place, slice(1), id=place) for place in ROWS),
        *(pytest.param(place, slice(1, None), id=f"{place}, else") for place in ROWS),
    ],
)
def test_one_row_that_cannot_be_read_leaves_every_other_answer_as_it_was(
    own_notebook: Engine, place: str, values: slice
) -> None:
    client, asked = signed_in(own_notebook, *Scope), addresses(own_notebook)
    secret = make_token(own_notebook, *Scope, name="program")
    make_token(own_notebook, Scope.READ)
    for value in values_for(own_notebook, place)[values]:
        damage(own_notebook, place, value)
        again = client_of(own_notebook)
        again.cookies = client.cookies
        assert not failed(again, secret, place, asked), value


@pytest.mark.parametrize(
    ("place", "address", "sentence"),
    [
        ("watch_list_versions.doc", "/watchlists/vision-team", 'the watch list "vision-team" is stored in a form that'),
        ("issues.doc", f"/issues/{MASK.id}", f'the issue "{MASK.id}" is stored in a form that cannot be read'),
        ("builds.doc", f"/builds/{quote(BAD.id)}", f'the build "{BAD.id}" is stored in a form that cannot be read'),
    ],
)
def test_the_page_of_what_cannot_be_read_says_so(own_notebook: Engine, place: str, address: str, sentence: str) -> None:
    damage(own_notebook, place, NO_JSON)
    client = client_of(own_notebook)
    for path in (address, f"/api/v1{address}"):
        answer = client.get(path)
        told = answer.json()["detail"] if path.startswith("/api") else html.unescape(answer.text)
        assert (answer.status_code, sentence in told.replace(">The ", ">the ")) == (404, True), (path, told)


def test_a_cell_that_cannot_be_read_says_what_to_do_and_is_no_answer(own_notebook: Engine) -> None:
    damage(own_notebook, "cells.doc", NO_JSON)
    client = client_of(own_notebook)
    cell = client.get(f"/api/v1/cells/{MASK.id}/{quote(BAD.id)}?hardware={HARDWARE}").json()
    assert (cell["verdict"], cell["assurance"]) == ("inconclusive", "not_known")
    assert "`knowngood reclassify` derives it again" in cell["reason"]
    gate = client.get(f"/api/v1/gate?build={quote(BAD.id)}&issues={MASK.id}&hardware={HARDWARE}")
    assert gate.json()["decision"] == "insufficient_evidence"


def test_what_was_left_out_is_counted_once(own_notebook: Engine) -> None:
    unreadable._tell.cache_clear()
    unreadable.take_met()
    damage(own_notebook, "builds.doc", NO_JSON)
    client = client_of(own_notebook)
    for address in ("/api/v1/builds", "/", "/builds", "/metrics"):
        client.get(address)
    assert 'knowngood_unreadable_rows_total{table="builds"} 1.0' in client.get("/metrics").text


def test_a_watch_list_that_cannot_be_read_can_be_written_anew(own_notebook: Engine) -> None:
    damage(own_notebook, "watch_list_versions.doc", NO_JSON)
    given.watch(own_notebook, "vision-team", WatchListContent(Watch(issues=(MASK.id,))))
    assert client_of(own_notebook).get("/api/v1/watchlists/vision-team").json()["version"] == 2
