"""Asking the application as a test does, and looking behind what it shows."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.middleware.gzip import GZipMiddleware
from starlette.testclient import TestClient

from knowngood.server import create_app
from knowngood.store.catalogue import save_known
from knowngood.store.engine import Engine, connect, unit_of_work
from knowngood.store.knowledge.snapshot import read_shipped
from knowngood.web.app_state import AppState, ResponseCache, state_of
from knowngood.web.auth.principal import AccessPolicy
from tests.web.given import NOW

Page = TypeVar("Page")


def client_of(engine: Engine, rules: AccessPolicy | None = None, *, base: str = "http://testserver") -> TestClient:
    """Without compression, whose middleware drops the message by which the test client learns a page's context, and
    without kept answers, which have none.

    test_caching.py looks at the application with both.
    """
    app = app_over(engine, rules)
    compressing: object = GZipMiddleware
    app.user_middleware = [one for one in app.user_middleware if one.cls is not compressing]
    app.state.state = replace(state_of(app), answers=ResponseCache(0))
    return TestClient(app, base, follow_redirects=False)


def client_of_release(new_store: Callable[[], str]) -> Iterator[TestClient]:
    """Over a store that knows what comes with the release."""
    engine = connect(new_store())
    with unit_of_work(engine) as s:
        save_known(s, read_shipped().knowledge.known, NOW)
    yield client_of(engine)
    engine.dispose()


def app_over(
    engine: Engine, rules: AccessPolicy | None = None, *, clock: Callable[[], datetime] = lambda: NOW
) -> FastAPI:
    """The whole application, with routes and templates that were made before."""
    app = create_app(engine, clock=clock, rules=rules)
    app.router.routes = [*_first().router.routes]
    app.state.state = replace(state_of(app), templates=state_of(_first()).templates)
    return app


@cache
def _first() -> FastAPI:
    """Whose routes and templates all take: they are the same in each. FastAPI looks at what a route takes, and Jinja
    compiles a page, when an application is first asked for it; that took 0.23 s of processor for each of hundreds of
    tests that have an application of their own (a busy machine, 2026-11-21).
    """
    return create_app(connect("sqlite://"), clock=lambda: NOW)


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def shown(client: TestClient, address: str, kind: type[Page]) -> Page:
    """The values behind the page at `address`."""
    page = values_of(client, address)["page"]
    assert isinstance(page, kind)
    return page


def page_at(client: TestClient, address: str) -> SimpleNamespace:
    """The values that the template of the page at `address` reads as `page`, by their names."""
    return SimpleNamespace(**values_of(client, address)["page"])


def values_of(client: TestClient, address: str) -> Mapping[str, Any]:
    """All values that the template of the page at `address` reads."""
    response = client.get(address)
    assert response.status_code == 200, response.text
    values: Mapping[str, Any] = vars(response)["context"]
    return values


def answer_at(client: TestClient, address: str, **asked: Any) -> Any:
    """The JSON that the API answers with."""
    response = client.get(address, params=asked or None)
    assert response.status_code == 200, response.text
    return response.json()


def template_of(client: TestClient, address: str) -> str:
    name: str = vars(client.get(address))["template"].name
    return name


def app_of(client: TestClient) -> FastAPI:
    return cast("FastAPI", client.app)


def client_state(client: TestClient) -> AppState:
    return state_of(app_of(client))


_ENDLESS = "/api/v1/events"  # a stream; asked for with what it refuses


def every_path(client: TestClient) -> set[str]:
    """Routes are found in the application, in the routers it was made of, and in its own document."""
    routes = app_of(client).routes
    routers = [router for route in routes if (router := getattr(route, "original_router", None)) is not None]
    inner = {route.path for router in routers for route in router.routes if isinstance(route, APIRoute)}
    outer = {str(getattr(route, "path", "")) for route in routes}
    found = {*inner, *outer, *app_of(client).openapi()["paths"]} - {""}
    assert {"/", "/runs", "/workers", "/cells/{issue}/{build}", "/api/v1/matrix", "/healthz"} <= found
    return found


def address_of(path: str) -> str:
    return re.sub(r"{\w+(:\w+)?}", "x", path) + ("?after=x" if path == _ENDLESS else "")
