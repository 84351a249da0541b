"""A corpus of what is sent to servers by mistake or in malice: each gets a refusal that names the field, soon.

The tables stand by route, so that a new route is one line. `Bad.field` is what the problem must name (empty: none).
"""

import asyncio
import gzip
import json
import time
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import httpx2
import pytest
from hypothesis import given as given_values
from hypothesis import settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from starlette.types import Message

from knowngood.domain.access import Actor, Scope
from knowngood.store.engine import Engine, unit_of_work
from knowngood.store.tokens import create_token
from knowngood.web.auth.principal import AccessPolicy
from knowngood.web.urls import MATRIX
from tests.web.asking import app_of, app_over
from tests.web.given import BAD, NOW

PROBLEM = "application/problem+json"
LONGEST_THAT_A_CLIENT_SENDS = 60_000
AT_MOST_S = 10.0  # on a busy host; a hang is minutes

MANY = ",".join(f"pytorch-{n}" for n in range(10_000))
HUGE = "9" * 5_000
METACHARACTERS = [
    "' OR 1=1 --",
    "'; DROP TABLE attempts; --",
    '" UNION SELECT * FROM tokens --',
    "%",
    "_",
    "../../../../etc/passwd",
    "..\\..\\windows",
    "/etc/passwd",
    "$(id)",
    "`id`",
    "{{7*7}}",
    "<script>alert(1)</script>",
    "\r\nSet-Cookie: a=b",
    "\u202e\u200b\ufeff",
    "🦆" * 20,
    "x" * 1500,
]

LISTS = ["issues", "builds", "runs", "attempts?issue=fla-160", "matrix", "changes"]
NAMED = {
    "issues/{}": "path",
    "builds/{}": "path",
    f"cells/{{}}/{quote(BAD.id)}": "path",
    "cells/fla-160/{}": "path",
    f"cells/{{}}/{quote(BAD.id)}/notes": "path",
    "attempts/{}": "path",
    "runs/{}": "path",
    "watchlists/{}": "path",
    "export/{}": "path",
}
PARAMETERS = [
    ("matrix", "issues"),
    ("matrix", "builds"),
    ("matrix", "component"),
    ("matrix", "hardware"),
    ("matrix", "columns"),
    ("matrix", "verdict"),
    ("matrix", "verdicts"),
    ("matrix", "since"),
    ("matrix", "stale"),
    ("matrix", "at"),
    ("matrix", "sort"),
    ("matrix", "fields"),
    ("matrix", "cursor"),
    ("matrix", "limit"),
    ("issues", "component"),
    ("issues", "severity"),
    ("issues", "cursor"),
    ("builds", "torch"),
    ("builds", "origin"),
    ("runs", "cursor"),
    ("runs", "limit"),
    ("attempts?issue=fla-160", "builds"),
    ("attempts?issue=fla-160", "outcome"),
    (f"builds/{quote(BAD.id)}", "hardware"),
    (f"cells/fla-160/{quote(BAD.id)}", "hardware"),
    (f"cells/fla-160/{quote(BAD.id)}", "at"),
    ("gate?issues=fla-160", "build"),
    (f"gate?issues=fla-160&build={quote(BAD.id)}", "hardware"),
    (f"gate?issues=fla-160&build={quote(BAD.id)}", "format"),
    ("changes", "limit"),
    ("export/csv", "hardware"),
    ("events", "after"),
]


@dataclass(frozen=True)
class Sent:
    """A body, as it goes over the wire."""

    id: str
    body: bytes
    field: str
    kind: str = "application/json"
    statuses: tuple[int, ...] = (422,)


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


JSON_BODIES = [
    Sent("10 MB", b'{"reason": "' + b"x" * 10_000_000 + b'"}', "", statuses=(413,)),
    Sent("10,000 levels", nested(10_000), "body"),
    Sent("10,000 lists", b"[" * 10_000 + b"]" * 10_000, "body"),
    Sent("invalid UTF-8", b'{"a": "\xff\xfe"}', "body"),
    Sent("no JSON", b"{", "body"),
    Sent("empty", b"", "body"),
    Sent("a list", b"[]", "body"),
    Sent("null", b"null", "body"),
    Sent("a text", b'"text"', "body"),
    Sent("not a number", b'{"a": NaN}', "body"),
    Sent("unknown media type", b"{}", "body", "application/x-unknown", (415,)),
    Sent("a media type that is none", b"{}", "body", "????", (415,)),
    Sent("XML", b"<a/>", "body", "application/xml", (415,)),
    Sent("a zip bomb's like", gzip.compress(b"0" * 1_000_000), "body", "application/gzip", (415,)),
]
NOTES = f"cells/fla-160/{quote(BAD.id)}/notes?hardware=cpu-x86_64".partition("?")[0]
OWN_BODIES = [
    ("POST", "gate", Sent("a name twice", b'{"build": "a", "build": "b"}', "body.build")),
    ("POST", "gate", Sent("an unknown name", b'{"bild": "a"}', "body.bild")),
    (
        "POST",
        "gate",
        Sent("10,000 issues", json.dumps({"issues": [f"x-{n}" for n in range(10_000)]}).encode(), "body.issues"),
    ),
    ("POST", "gate", Sent("a huge number", b'{"issues": [' + HUGE.encode() + b"]}", "body")),
    ("POST", "gate", Sent("NUL", b'{"build": "torch-2.6.0\\u0000", "issues": ["fla-160"]}', "build")),
    ("POST", "gate", Sent("half a pair", b'{"build": "\\ud800", "issues": ["fla-160"]}', "body.build")),
    ("POST", NOTES, Sent("a name twice", b'{"kind": "void", "kind": "void", "reason": "x"}', "body.kind")),
    ("POST", NOTES, Sent("NUL", b'{"kind": "void", "reason": "a\\u0000b"}', "body.reason")),
    ("POST", NOTES, Sent("half a pair", b'{"kind": "void", "reason": "a\\ud800b"}', "body.reason")),
    ("POST", NOTES, Sent("another kind", b'{"kind": "bless", "reason": "x"}', "body.kind")),
    ("POST", NOTES, Sent("a number", b'{"kind": "void", "reason": 1}', "body.reason")),
    ("PUT", "watchlists/mine", Sent("a name twice", b'{"issues": [], "issues": []}', "body.issues")),
    ("PUT", "watchlists/mine", Sent("NUL", b'{"issues": ["a\\u0000"]}', "body.issues.0")),
    ("POST", "results", Sent("no bundle", b"nonsense", "", "application/x-ndjson")),
    ("POST", "results", Sent("nothing", b"", "", "application/x-ndjson")),
    ("POST", "results", Sent("deep JSON", nested(10_000) + b"\n", "", "application/x-ndjson")),
    ("POST", "results", Sent("half a gzip", gzip.compress(b"{}\n" * 1000)[:40], "", "application/gzip")),
    ("POST", "results", Sent("NUL", b"\0" * 1000, "", "application/gzip")),
    ("POST", "results", Sent("a bomb", gzip.compress(b"0" * 50_000_000), "", "application/gzip", (413, 422))),
]
WITH_BODY = [("POST", "gate"), ("POST", NOTES), ("PUT", "watchlists/mine")]


@pytest.fixture(scope="module")
def asker(notebook: Engine) -> TestClient:
    """Reads only."""
    return TestClient(app_over(notebook, rules=AccessPolicy(requests_per_s=0)), raise_server_exceptions=False)


@pytest.fixture
def writer(own_notebook: Engine) -> TestClient:
    """Reads and writes, in a store of its own."""
    with unit_of_work(own_notebook) as s:
        made = create_token(s, name="everything", scopes=list(Scope), by=Actor("tests"), now=NOW)
    client = TestClient(app_over(own_notebook), raise_server_exceptions=False)
    client.headers["Authorization"] = f"Bearer {made.secret}"
    return client


def refusal(  # noqa: PLR0913 - a request is made of that much
    client: TestClient,
    method: str,
    address: str,
    *,
    named: str,
    body: bytes | None = None,
    kind: str = "",
    statuses: tuple[int, ...] = (422,),
) -> None:
    """Ask, and see that it is refused soon, in our shape, with the field at fault."""
    began = time.monotonic()
    headers = {"Content-Type": kind} if kind else {}
    target = f"/api/v1/{address}"
    if len(target) > LONGEST_THAT_A_CLIENT_SENDS:
        response = asked_by_hand(client, method, target)
    else:
        response = client.request(method, target, content=body, headers=headers)
    assert time.monotonic() - began < AT_MOST_S
    assert response.status_code in statuses, (response.status_code, response.text[:500])
    assert response.headers["content-type"] == PROBLEM
    problem = response.json()
    assert problem["status"] == response.status_code
    assert problem["detail"]
    if named:
        fields = [one["field"] for one in problem["errors"]]
        assert any(one == named or one.startswith(f"{named}.") for one in fields), problem


def asked_by_hand(client: TestClient, method: str, target: str) -> httpx2.Response:
    """As a server hands over a request line that our client refuses to write."""
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(b"host", b"testserver")],
        "client": ("testclient", 1),
        "server": ("testserver", 80),
    }
    told: list[MutableMapping[str, Any]] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        told.append(message)

    asyncio.run(app_of(client)(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in told[1:])
    return httpx2.Response(told[0]["status"], headers=told[0]["headers"], content=body)


def with_parameter(address: str, parameter: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}{parameter}"


@pytest.mark.parametrize(("address", "named"), NAMED.items())
def test_a_name_that_is_no_text_names_the_path(asker: TestClient, address: str, named: str) -> None:
    for name in ("a%00b", "%00", "%ff", "a%c3%28", "%ed%a0%80", "%f8%a1%a1%a1%a1"):
        refusal(asker, "GET", address.format(name), named=named)
    refusal(asker, "GET", address.format("x" * 100_000), named=named)


@pytest.mark.parametrize("address", NAMED)
def test_a_name_with_signs_that_mean_something_elsewhere_is_a_name(asker: TestClient, address: str) -> None:
    for name in METACHARACTERS:
        if quote(name, safe="") == name and set(name) <= {".", "_"}:
            continue
        refusal(asker, "GET", address.format(quote(name, safe="")), named="", statuses=(404, 422))


@pytest.mark.parametrize(("address", "parameter"), PARAMETERS)
def test_a_value_that_is_no_text_names_its_parameter(asker: TestClient, address: str, parameter: str) -> None:
    for value in ("a%00b", "%00", "%ff", "a%c3%28", "%ed%a0%80"):
        refusal(asker, "GET", with_parameter(address, f"{parameter}={value}"), named=parameter)


@pytest.mark.parametrize(("address", "parameter"), PARAMETERS)
@settings(max_examples=settings().max_examples // 6)  # `make soak` asks for enough to have all of them
@given_values(st.sampled_from([*METACHARACTERS, MANY, HUGE, f"-{HUGE}", "1e999", "2099-01-01", "x" * 60_000]))
def test_a_value_that_means_nothing_here_names_its_parameter(
    asker: TestClient, address: str, parameter: str, value: str
) -> None:
    # A build that nobody heard of is an answer of the gate, not a question that cannot be asked.
    is_asked = value == MANY if address.startswith("gate") and parameter == "build" else True
    if is_asked and not (parameter == "torch" and value in {"%", "_"}):
        refusal(asker, "GET", with_parameter(address, f"{parameter}={quote(value, safe='')}"), named=parameter)


@pytest.mark.parametrize("address", LISTS)
def test_a_parameter_that_is_not_known_is_named_with_what_is(asker: TestClient, address: str) -> None:
    for name in ("nonsense", "Limit", "limit[]", "__proto__", "a b", "\N{SNOWMAN}"):
        refusal(asker, "GET", with_parameter(address, f"{quote(name)}=1"), named=name)


@pytest.mark.parametrize("address", LISTS)
def test_a_parameter_that_stands_twice_is_named(asker: TestClient, address: str) -> None:
    refusal(asker, "GET", with_parameter(address, "limit=1&limit=1"), named="limit")
    refusal(asker, "GET", with_parameter(address, "&".join(["limit=1"] * 1500)), named="limit")


@pytest.mark.parametrize("address", ["matrix", "export/csv", "changes", "gate"])
def test_ten_thousand_issues_are_too_many_for_an_address(asker: TestClient, address: str) -> None:
    refusal(asker, "GET", f"{address}?issues={MANY}", named="issues")
    refusal(asker, "GET", f"{address}?{'&'.join(f'issues=x-{n}' for n in range(1_500))}", named="issues")
    refusal(asker, "GET", f"{address}?{'&'.join(f'issues=x-{n}' for n in range(10_000))}", named="query")


@pytest.mark.parametrize(
    "limit", ["0", "-1", "1001", HUGE, "1.5", "0x10", "1e3", "", "%20", "\N{ARABIC-INDIC DIGIT ONE}x"]
)
@pytest.mark.parametrize("address", LISTS)
def test_a_limit_that_is_none_is_named(asker: TestClient, address: str, limit: str) -> None:
    refusal(asker, "GET", with_parameter(address, f"limit={quote(limit)}"), named="limit")


@pytest.mark.parametrize(("method", "address"), WITH_BODY)
def test_a_body_that_cannot_be_read_is_said_to_be_at_fault(writer: TestClient, method: str, address: str) -> None:
    for sent in JSON_BODIES:
        refusal(writer, method, address, named=sent.field, body=sent.body, kind=sent.kind, statuses=sent.statuses)


@pytest.mark.parametrize(
    ("method", "address", "sent"),
    OWN_BODIES,
    ids=[f"{method} {address.partition('/')[0]}: {sent.id}" for method, address, sent in OWN_BODIES],
)
def test_a_body_that_means_nothing_here_names_the_place(
    writer: TestClient, method: str, address: str, sent: Sent
) -> None:
    refusal(writer, method, address, named=sent.field, body=sent.body, kind=sent.kind, statuses=sent.statuses)


def test_a_body_that_grows_beyond_what_it_said_is_refused(writer: TestClient) -> None:
    pieces = (b"x" * 1_000_000 for _ in range(12))
    response = writer.post("/api/v1/gate", content=pieces, headers={"Content-Type": "application/json"})
    assert (response.status_code, response.headers["content-type"]) == (413, PROBLEM)


@pytest.mark.parametrize("last", [b"9" * 19, b"9" * 40, b"\xb2", b"-1", b"x", b"\xff", b"1 OR 1=1", b"0x10"])
def test_a_stream_goes_on_from_no_event_that_never_was(asker: TestClient, last: bytes) -> None:
    response = asker.get("/api/v1/events", headers={b"Last-Event-ID": last})
    assert (response.status_code, response.json()["errors"][0]["field"]) == (422, "Last-Event-ID")


def test_a_stream_goes_on_from_no_number_that_no_database_holds(asker: TestClient) -> None:
    for after in ("9" * 19, "9" * 30, "-1", "1.5"):
        refusal(asker, "GET", f"events?after={after}", named="after")


@pytest.mark.parametrize("address", [MATRIX, "/issues/fla-160", "/builds/x", "/runs", "/compare", "/static/x/y"])
def test_pages_refuse_what_is_no_text_too(asker: TestClient, address: str) -> None:
    for query in ("q=%ff", "q=%00", "%ff=1", "lang=%00"):
        assert asker.get(f"{address}?{query}").status_code in {404, 422}
    assert asker.get("/issues/%00").status_code == 422
