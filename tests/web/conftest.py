"""The application over a filled notebook (read-only, made once) and over a store of the test's own."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.store.session import Engine, connect
from tests.web.asking import client_of
from tests.web.given import fill


@pytest.fixture(scope="session")
def notebook(migrated_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    path = tmp_path_factory.mktemp("web") / "notebook.db"
    shutil.copy(migrated_sqlite, path)
    engine = connect(f"sqlite:///{path}")
    fill(engine)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def client(notebook: Engine) -> TestClient:
    """Pages over the filled notebook. Tests that write use `own`."""
    return client_of(notebook)


@pytest.fixture
def own(sqlite_engine: Engine) -> TestClient:
    """Pages over an empty store of the test's own (`sqlite_engine`)."""
    return client_of(sqlite_engine)
