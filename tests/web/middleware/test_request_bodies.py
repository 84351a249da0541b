"""Bodies are counted before they are decoded: each of these froze the server for seconds, and is refused in a
moment.
"""

import json
from collections.abc import Mapping
from functools import cache

import pytest
from starlette.testclient import TestClient

from knowngood.store.engine import Engine
from knowngood.web.auth.principal import AccessPolicy
from knowngood.web.middleware.rate_limit import BytesInFlight, TooMuch
from knowngood.web.middleware.request_bodies import MOST_NAMES
from knowngood.web.urls import MATRIX
from tests.pace import cost
from tests.web.asking import client_of

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
GATE = "/api/v1/gate"
QUESTION = b'{"build": "torch-2.6.0+cu124", "issues": ["fla-160"]}'
MOST_LOOPS = 180  # 18 at most here (2026-11-27); each took three times as much, and most minutes


@pytest.fixture(scope="module")
def asker(notebook: Engine) -> TestClient:
    return client_of(notebook, AccessPolicy(requests_per_s=0))


def refused(client: TestClient, address: str, body: bytes, kind: str, status: int, told: str) -> None:
    def ask() -> None:
        response = client.post(address, content=body, headers={"Content-Type": kind, "Origin": "http://testserver"})
        assert response.status_code == status, response.text[:500]
        assert told in response.text

    assert cost(ask, MOST_LOOPS) < MOST_LOOPS


def multipart(parts: int, charset: str = "") -> tuple[bytes, str]:
    part = b'--B\r\nContent-Disposition: form-data; name="issues"\r\n\r\nfla-160\r\n'
    return part * parts + b"--B--\r\n", f"multipart/form-data; boundary=B{charset}"


@cache
def names(count: int, twice: int) -> bytes:
    return b"{" + b",".join(map(b'"n%d": 1'.__mod__, range(count - twice + 1))) + b',"n0": 1' * (twice - 1) + b"}"


def nested(levels: int) -> bytes:
    return b'{"issues": ' + b"[" * levels + b"]" * levels + b"}"


HOSTILE: Mapping[str, tuple[str, bytes, str, int, str]] = {
    "40,000 names, one of them twice": (GATE, names(40_000, 2), JSON, 422, "more than 2,500 names"),
    "the same without a media type": (GATE, names(40_000, 2), "", 422, "more than 2,500 names"),
    "half a million unknown names": (GATE, names(500_000, 1), JSON, 422, "more than 2,500 names"),
    "in a text that is explained": ("/api/v1/errors", names(500_000, 1), JSON, 422, "more than 2,500 names"),
    "in a note": ("/api/v1/cells/fla-160/x/notes", names(500_000, 1), JSON, 422, "more than 2,500 names"),
    "as another kind of JSON": (GATE, names(9_000, 1), "application/x+json", 422, "more than 2,500 names"),
    "behind a blank that some strip and some do not": (
        GATE,
        names(40_000, 2),
        f"{JSON}\x1c",
        422,
        "more than 2,500 names",
    ),
    "four million values": (GATE, b"[" + b"1," * 4_000_000 + b"1]", JSON, 422, "more than 10,000 values"),
    "four million texts": (GATE, b'""' * 4_000_000, JSON, 422, "more than 10,000 values"),
    "100,000 levels behind such a blank": (GATE, nested(100_000), f"{JSON}\x1c", 422, "64 levels"),
    "65 levels": (GATE, nested(64), JSON, 422, "64 levels"),
    "four million levels": (GATE, nested(4_000_000), JSON, 422, "64 levels"),
    "UTF-16": (GATE, QUESTION.decode().encode("utf-16"), JSON, 422, "UTF-8"),
    "UTF-32": (GATE, QUESTION.decode().encode("utf-32-le"), JSON, 422, "UTF-8 alone"),
    "JSON in another encoding": (GATE, QUESTION, f"{JSON}; charset=utf-7", 415, "UTF-8 alone"),
    "a form in punycode": (GATE, *multipart(3, "; charset=punycode"), 415, "UTF-8 alone"),
    "a form in quoted punycode": (GATE, *multipart(3, '; Charset="PUNYCODE"'), 415, "UTF-8 alone"),
    "a form of 100,000 parts": (GATE, *multipart(100_000), 422, "more than 2,500 parts"),
    "a form of 4,000,000 fields": ("/errors", b"a=&" * 2_000_000, FORM, 422, "more than 2,500 fields"),
    "a form in EBCDIC": ("/errors", b"text=x", f"{FORM}; charset=cp037", 415, "UTF-8 alone"),
}


@pytest.mark.parametrize(("address", "body", "kind", "status", "told"), HOSTILE.values(), ids=HOSTILE)
def test_what_holds_too_much_is_refused_before_it_is_decoded(
    asker: TestClient, address: str, body: bytes, kind: str, status: int, told: str
) -> None:
    refused(asker, address, body, kind, status, told)


@pytest.mark.parametrize("address", [MATRIX, "/api/v1/gate", "/api/v1/matrix", "/nothing", "/static/x", "/healthz"])
def test_an_address_has_so_many_parameters_at_most(asker: TestClient, address: str) -> None:
    for parameter, count in (("a=1", MOST_NAMES + 1), ("", 900_000)):
        asked = f"{address}?{'&'.join([parameter] * count)}"[:60_000]

        def ask(asked: str = asked) -> None:
            response = asker.get(asked)
            assert (response.status_code, "more than 2,500 parameters" in response.text) == (422, True)

        assert cost(ask, MOST_LOOPS) < MOST_LOOPS


def test_what_is_just_within_the_limits_is_read(asker: TestClient) -> None:
    deep = json.dumps({"build": "torch-2.6.0+cu124", "issues": ["fla-160"], "x": json.loads(nested(62))}).encode()
    for body, kind, status in (
        (QUESTION, JSON, 200),
        (QUESTION, f'{JSON}; charset="UTF-8"', 200),
        (QUESTION, "", 200),
        (deep, JSON, 422),
        (json.dumps({f"n{n}": 1 for n in range(MOST_NAMES)}).encode(), JSON, 422),
        (*multipart(100), 422),
    ):
        response = asker.post(GATE, content=body, headers={"Content-Type": kind} if kind else {})
        assert response.status_code == status, response.text
        assert "more than" not in response.text
        assert "levels" not in response.text


def test_a_text_may_hold_whatever_it_likes(asker: TestClient) -> None:
    """Brackets and quotes of a log are none of the body's own."""
    log = '[{"a": [[[' * 50_000 + '\\"'
    told = asker.post("/api/v1/errors", json={"text": log})
    assert told.status_code == 200
    assert asker.post("/api/v1/errors", content=log, headers={"Content-Type": "text/plain"}).status_code == 200


def test_a_name_as_long_as_the_body_is_not_sent_back(asker: TestClient) -> None:
    body = b'{"' + b"x" * 2_000_000 + b'": 1}'
    response = asker.put("/api/v1/watchlists/mine", content=body, headers={"Content-Type": JSON})
    assert len(response.content) < 5_000
    assert len(asker.post(GATE, content=body, headers={"Content-Type": JSON}).content) < 5_000


# -- bodies that are held ----------------------------------------------------------------------------------------------


def test_what_is_held_is_bounded_for_each_asker_and_for_all_and_comes_free_again() -> None:
    held = BytesInFlight(100, 40)
    held.add("a", 40)
    with pytest.raises(TooMuch) as own:
        held.add("a", 1)
    held.add("b", 40)
    with pytest.raises(TooMuch) as all_:
        held.add("c", 21)
    assert (own.value.status_code, all_.value.status_code) == (429, 503)
    held.add("c", 20)
    held.free("a", 40)
    held.add("a", 40)


def test_bodies_are_free_again_once_they_were_answered(asker: TestClient) -> None:
    """More than all that is held at once, one after the other."""
    body = b'{"text": "' + b"x" * 7_000_000 + b'"}'
    statuses = {asker.post(GATE, content=body, headers={"Content-Type": JSON}).status_code for _ in range(20)}
    assert statuses == {422}
