"""Every address there is, also those that nobody lists: safe headers, closed where reads are closed, no token told."""

import pytest
from starlette.testclient import TestClient

from knowngood.domain.access import Scope
from knowngood.store.engine import Engine
from knowngood.web.auth.principal import AccessPolicy
from knowngood.web.middleware.headers import CONTENT_SECURITY_POLICY, HEADERS
from tests.web.asking import address_of, bearer, client_of, every_path
from tests.web.given import make_token

METHODS = ["GET", "POST", *(pytest.param(one, marks=pytest.mark.soak) for one in ("HEAD", "PUT", "DELETE", "OPTIONS"))]
OPEN = {"/healthz", "/readyz", "/sign-in", "/sign-out", "/preferences", "/static/{digest}/{name}"}
OWN_SCOPE = {"/api/v1/whoami", "/api/v1/results"}


@pytest.mark.parametrize("method", METHODS)
def test_every_answer_carries_the_headers_that_keep_browsers_from_harm(own: TestClient, method: str) -> None:
    """Refusals, redirects and addresses that do not exist too."""
    for path in {*every_path(own), "/nothing", "/api/v1/nothing", "/static/x/../../etc/passwd"}:
        told = own.request(method, address_of(path)).headers
        assert {name: told.get(name) for name in HEADERS} == HEADERS, (method, path)


def test_the_policy_lets_nothing_in_from_elsewhere_and_nothing_inline() -> None:
    rules = dict(part.strip().partition(" ")[::2] for part in CONTENT_SECURITY_POLICY.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["frame-ancestors"] == "'none'"
    assert set(rules.values()) == {"'none'", "'self'"}


@pytest.mark.parametrize("method", METHODS)
def test_where_reads_are_closed_every_page_and_every_door_is(own_engine: Engine, method: str) -> None:
    closed = client_of(own_engine, AccessPolicy(reads_need_token=True))
    for path in {*every_path(closed), "/nothing", "/api/v1/nothing"} - OPEN - OWN_SCOPE:
        assert closed.request(method, address_of(path)).status_code in {303, 401}, (method, path)


def test_no_answer_repeats_the_token_that_it_was_asked_with(own: TestClient, own_engine: Engine) -> None:
    """Nor its secret half, nor a cookie's worth of it."""
    secret = make_token(own_engine, Scope.ADMIN)
    public, _, rest = secret.removeprefix("kg_").partition("_")
    assert len(rest) == 64, public
    for path in every_path(own):
        for method in ("GET", "POST"):
            answer = own.request(method, address_of(path), headers=bearer(secret))
            assert rest not in answer.text, (method, path)
            assert rest not in str(answer.headers), (method, path)
