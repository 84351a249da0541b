"""The application over a filled notebook (read-only, made once) and over a store of the test's own."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

from knowngood.app.store.engine import Engine, connect
from tests.conftest import NewStore
from tests.web.asking import client_of

if TYPE_CHECKING:  # the file skips its importer where the driver of browsers is missing
    from playwright.sync_api import Browser

    from tests.web.browsing import Chromium


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


@pytest.fixture(scope="module")
def chromium() -> "Iterator[Chromium]":
    from tests.web.browsing import opened_chromium

    with opened_chromium() as chromium:
        yield chromium


@pytest.fixture
def browser(chromium: "Chromium") -> "Browser":
    return chromium.living()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test whose browser crashed under it says nothing: it runs once more, in a new one."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=["TargetClosedError"]))
