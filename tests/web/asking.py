"""Asking the application as a test does, and looking behind what it shows."""

from dataclasses import replace
from typing import TypeVar, cast

from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware
from starlette.testclient import TestClient

from app.store.session import Engine
from app.web.application import create_app
from app.web.reader import Rules
from app.web.visit import Answers, House
from tests.web.given import NOW

Page = TypeVar("Page")


def client_of(engine: Engine, rules: Rules | None = None, *, base: str = "http://testserver") -> TestClient:
    """Without compression, whose middleware drops the message by which the test client learns a page's context, and
    without kept answers, which have none.

    test_caching.py looks at the application with both.
    """
    app = create_app(engine, clock=lambda: NOW, rules=rules)
    compressing: object = GZipMiddleware
    app.user_middleware = [one for one in app.user_middleware if one.cls is not compressing]
    app.state.house = replace(app.state.house, answers=Answers(0))
    return TestClient(app, base, follow_redirects=False)


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def shown(client: TestClient, address: str, kind: type[Page]) -> Page:
    """The values behind the page at `address`."""
    response = client.get(address)
    assert response.status_code == 200, response.text
    page = vars(response)["context"]["page"]
    assert isinstance(page, kind)
    return page


def template_of(client: TestClient, address: str) -> str:
    name: str = vars(client.get(address))["template"].name
    return name


def app_of(client: TestClient) -> FastAPI:
    return cast("FastAPI", client.app)


def house_of(client: TestClient) -> House:
    house = app_of(client).state.house
    assert isinstance(house, House)
    return house
