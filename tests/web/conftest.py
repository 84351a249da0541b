"""The application over a filled notebook (read-only, made once) and over a store of the test's own."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from app.store.session import Engine, connect
from tests.conftest import NewStore
from tests.web.asking import client_of


@pytest.fixture(scope="session")
def notebook(new_store: NewStore, filled_store: str) -> Iterator[Engine]:
    engine = connect(new_store(filled_store))
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def client(notebook: Engine) -> TestClient:
    """Pages over the filled notebook. Tests that write use `own`."""
    return client_of(notebook)


@pytest.fixture
def own(own_engine: Engine) -> TestClient:
    """Pages over an empty store of the test's own (`own_engine`)."""
    return client_of(own_engine)
