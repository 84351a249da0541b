"""How much one asker may ask for, how each request is named, and what other sites may read."""

import json
from typing import Any

import pytest
import structlog
from starlette.testclient import TestClient

from knowngood.domain.access import Scope
from knowngood.store.engine import Engine, connect
from knowngood.web.auth.principal import AccessPolicy
from knowngood.web.errors import PROBLEM_MEDIA
from knowngood.web.middleware.rate_limit import Buckets, TooMany, asker_at
from knowngood.web.urls import MATRIX
from tests.web.asking import app_of, bearer, client_of
from tests.web.given import make_token

SLOW = AccessPolicy(requests_per_s=0.001, burst=3)


# -- requests in a time ------------------------------------------------------------------------------------------------


class Watch:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def taken(buckets: Buckets, asker: str, n: int) -> int:
    done = 0
    for _ in range(n):
        try:
            buckets.take(asker)
        except TooMany:
            continue
        done += 1
    return done


def test_a_burst_is_taken_and_then_as_many_as_come_back() -> None:
    watch = Watch()
    buckets = Buckets(2.0, 5, watch)
    assert taken(buckets, "a", 9) == 5
    watch.now += 1.0
    assert taken(buckets, "a", 9) == 2
    watch.now += 1000.0
    assert taken(buckets, "a", 9) == 5


def test_each_asker_has_a_bucket_of_their_own() -> None:
    buckets = Buckets(1.0, 2, Watch())
    assert (taken(buckets, "a", 5), taken(buckets, "b", 5)) == (2, 2)


@pytest.mark.parametrize(("per_s", "wait_s"), [(2.0, 1), (1.0, 1), (0.25, 4), (0.001, 1000)])
def test_who_is_refused_is_told_how_long_to_wait(per_s: float, wait_s: int) -> None:
    watch = Watch()
    buckets = Buckets(per_s, 1, watch)
    buckets.take("a")
    with pytest.raises(TooMany) as refused:
        buckets.take("a")
    assert refused.value.wait_s == wait_s
    watch.now += wait_s
    buckets.take("a")


def test_no_rate_is_no_limit() -> None:
    assert taken(Buckets(0.0, 1), "a", 1000) == 1000


def test_memory_is_bounded_however_many_ask() -> None:
    buckets = Buckets(1.0, 1, Watch())
    for n in range(30_000):
        buckets.take(f"10.0.{n // 256}.{n % 256}")
    assert len(buckets) == 10_000


def test_looking_counts_nothing() -> None:
    buckets = Buckets(1.0, 1, Watch())
    for _ in range(5):
        buckets.look("a")
    assert len(buckets) == 0
    buckets.take("a")
    with pytest.raises(TooMany):
        buckets.look("a")


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("testclient", "testclient", True),
    ],
)
def test_a_household_is_one_asker(one: str, other: str, is_same: bool) -> None:
    assert (asker_at(one) == asker_at(other)) is is_same


def test_too_many_requests_are_a_problem_that_says_when_to_come_back(own_engine: Engine) -> None:
    client = client_of(own_engine, SLOW)
    answers = [client.get("/api/v1/runs") for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    refused = answers[-1]
    assert refused.headers["content-type"] == PROBLEM_MEDIA
    told = refused.headers["retry-after"]
    assert 900 < int(told) <= 1000, "a thousand seconds, less those that the five requests took"
    assert refused.headers["cache-control"] == "no-store"
    assert f"wait {told} s" in refused.json()["detail"]
    assert client.get(MATRIX).status_code == 429


def test_a_token_has_a_bucket_of_its_own_wherever_it_is_used(own_engine: Engine) -> None:
    client = client_of(own_engine, SLOW)
    first, second = (bearer(make_token(own_engine, Scope.READ, name=name)) for name in ("a", "b"))
    for headers in (None, first, second):
        statuses = [client.get("/api/v1/whoami", headers=headers).status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]


def test_a_flood_of_wrong_tokens_ends_without_more_queries_and_hinders_no_right_one(
    own_engine: Engine, count_statements: Any
) -> None:
    client = client_of(own_engine, SLOW)
    wrong = bearer("kg_0123456789ab_" + "0" * 64)
    assert [client.get("/api/v1/whoami", headers=wrong).status_code for _ in range(4)] == [401, 401, 401, 429]
    with count_statements(own_engine) as said:
        assert client.get("/api/v1/whoami", headers=wrong).status_code == 429
    assert said == []
    assert client.get("/api/v1/whoami").status_code == 200


# -- bodies ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_told", [True, False])
@pytest.mark.parametrize(
    ("method", "address"), [("PUT", "/api/v1/watchlists/mine"), ("POST", "/api/v1/gate"), ("POST", "/sign-in")]
)
def test_a_body_beyond_the_limit_is_refused(own_engine: Engine, method: str, address: str, is_told: bool) -> None:
    client = client_of(own_engine, AccessPolicy(body_limit=1000))
    body: Any = b"x" * 2000 if is_told else iter([b"x" * 600, b"x" * 1400])
    kind = "application/x-www-form-urlencoded" if address == "/sign-in" else "application/json"
    headers = {"Origin": "http://testserver", "Content-Type": kind}
    response = client.request(method, address, content=body, headers=headers)
    assert response.status_code == 413
    if address != "/sign-in":
        assert response.headers["content-type"] == PROBLEM_MEDIA
        assert "larger than the" in response.json()["detail"]


def test_a_length_of_thousands_of_digits_is_no_fault_of_ours(own: TestClient) -> None:
    headers = {"Content-Length": "9" * 5000, "Content-Type": "application/json"}
    assert own.put("/api/v1/watchlists/mine", content=b"{}", headers=headers).status_code == 413


# -- names of requests -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["abc-123", "a" * 64, "Root=1-67891233-abcdef012345678912345678", "a.b:c/d+e="])
def test_a_request_keeps_the_name_it_came_with(own: TestClient, asked: str) -> None:
    for address in (MATRIX, "/api/v1/runs", "/nothing", "/healthz"):
        assert own.get(address, headers={"X-Request-ID": asked}).headers["x-request-id"] == asked


@pytest.mark.parametrize("asked", ["", "a b", "a" * 65, "<script>", "a\tb"])
def test_a_request_without_a_sane_name_gets_one(own: TestClient, asked: str) -> None:
    names = {own.get("/api/v1/runs", headers={"X-Request-ID": asked}).headers["x-request-id"] for _ in range(3)}
    assert len(names) == 3
    assert all(len(name) == 32 and name.isalnum() for name in names)


@pytest.mark.parametrize("status", [304, 401, 404, 405, 422, 500])
def test_every_answer_is_named(own: TestClient, status: int) -> None:
    headers = {"X-Request-ID": "abc-123"}
    match status:
        case 304:
            tag = own.get("/api/v1/runs").headers["etag"]
            response = own.get("/api/v1/runs", headers={**headers, "If-None-Match": tag})
        case 401:
            response = own.get("/api/v1/runs", headers={**headers, "Authorization": "Bearer x"})
        case 404:
            response = own.get("/nothing", headers=headers)
        case 405:
            response = own.delete("/api/v1/runs", headers=headers)
        case 422:
            response = own.get("/api/v1/runs?limit=x", headers=headers)
        case _:
            state = app_of(own).state.state
            app_of(own).state.state = None
            response = TestClient(app_of(own), raise_server_exceptions=False).get("/api/v1/issues", headers=headers)
            app_of(own).state.state = state
    assert (response.status_code, response.headers["x-request-id"]) == (status, "abc-123")


def test_every_line_of_the_log_carries_the_name(capsys: pytest.CaptureFixture[str]) -> None:
    before = structlog.get_config()
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger("info"),  # whatever a command before has set
    )
    try:
        client_of(connect("sqlite:////nowhere/at/all.db")).get("/api/v1/runs", headers={"X-Request-ID": "abc-123"})
    finally:
        structlog.configure(**before)
    written = "\n".join(capsys.readouterr())  # to standard error once a command was run in this process
    lines = [json.loads(one) for one in written.splitlines() if one.startswith("{")]
    assert [line["event"] for line in lines] == ["the store cannot be used", "request"]
    assert {line["request_id"] for line in lines} == {"abc-123"}


# -- other sites -------------------------------------------------------------------------------------------------------

ELSEWHERE = {"Origin": "https://elsewhere.example"}


def test_pages_of_other_sites_may_read_the_api_as_nobody(own: TestClient) -> None:
    for address in ("/api/v1/runs", "/api/v1/issues/nothing", "/openapi.json"):
        response = own.get(address, headers=ELSEWHERE)
        assert response.headers["access-control-allow-origin"] == "*"
        assert "ETag" in response.headers["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in response.headers


def test_other_sites_read_no_pages_and_write_nothing(own: TestClient) -> None:
    for address in (MATRIX, "/sign-in", "/healthz"):
        assert "access-control-allow-origin" not in own.get(address, headers=ELSEWHERE).headers
    for method in ("POST", "PUT", "DELETE"):
        response = own.request(method, "/api/v1/watchlists/mine", headers=ELSEWHERE)
        assert "access-control-allow-origin" not in response.headers


def test_a_browser_that_asks_first_is_told_what_it_may(own: TestClient) -> None:
    asking = {**ELSEWHERE, "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "authorization"}
    response = own.options("/api/v1/watchlists/mine", headers=asking)
    assert response.status_code == 204
    assert response.headers["access-control-allow-methods"] == "GET, HEAD"
    assert "authorization" not in response.headers["access-control-allow-headers"].lower()
    assert "access-control-allow-credentials" not in response.headers
