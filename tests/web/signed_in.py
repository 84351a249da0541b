"""A person who is signed in, as their browser is: a cookie, and the word that our own forms carry."""

import re
from typing import Any

from starlette.testclient import TestClient

from knowngood.domain.access import Scope
from knowngood.store.engine import Engine
from tests.web.asking import client_of
from tests.web.given import make_token

HERE = {"Origin": "http://testserver"}


def signed_in(engine: Engine, *scopes: Scope, name: str = "ada") -> TestClient:
    client = client_of(engine)
    secret = make_token(engine, *scopes, name=name)
    assert client.post("/sign-in", data={"token": secret, "to": "/"}, headers=HERE).status_code == 303
    return client


def form_word(client: TestClient, address: str) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', client.get(address).text)
    assert found, address
    return found[1]


def send(client: TestClient, address: str, form: str = "", **fields: Any) -> Any:
    """Fill in the form that stands at `form` (`address` itself unless said) and send it to `address`."""
    word = form_word(client, form or address)
    return client.post(address, data={"form_token": word, **fields}, headers=HERE)
