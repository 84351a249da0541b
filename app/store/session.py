"""Opening the database, and the two ways to use it: a unit of work that commits once at the edge, and a reading."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection as SqliteConnection
from sqlite3 import OperationalError as SqliteError
from typing import Any, cast

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session

from app.domain.errors import StoreUnusable

__all__ = ["Engine", "Session", "connect", "migrate", "reading", "require_current", "unit_of_work"]

_MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"
_WRITES = "knowngood_writes"
_WAIT_S = "knowngood_wait_s"
_BUSY_TIMEOUT_S = 60  # importing a large bundle holds the only write lock for that long on a slow host
_MIGRATION_LOCK = 0x6B6E_6F77  # any constant of ours: PostgreSQL's advisory locks are numbers


def connect(url: str) -> Engine:
    """An engine for `sqlite:////path/file.db` or `postgresql://...`. Opens nothing yet."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        raise StoreUnusable(
            f'"{url}" is no database address; write sqlite:////path/knowngood.db or postgresql://...'
        ) from None
    if parsed.get_backend_name() == "sqlite":
        return _sqlite(parsed)
    if parsed.get_backend_name() == "postgresql":
        return _postgresql(parsed)
    raise StoreUnusable(f'"{parsed.get_backend_name()}" databases are not supported; use sqlite or postgresql')


def _sqlite(url: sa.URL) -> Engine:
    engine = sa.create_engine(url, connect_args={"timeout": _BUSY_TIMEOUT_S})

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: SqliteConnection, _record: object) -> None:
        # The driver must not begin transactions by itself: it begins too late for read-then-write to be safe.
        connection.isolation_level = None
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A deferred writer that read first fails with "database is locked" when another one wrote in between
        # (measured: 8 threads x 50 read-then-write units; only IMMEDIATE counted to 400).
        options = connection.get_execution_options()
        if options.get(_WRITES, False):
            wait_ms = int(options.get(_WAIT_S, _BUSY_TIMEOUT_S) * 1000)
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {wait_ms}")  # connections are used again
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get(_WRITES, False) else "BEGIN")

    return engine


def _write_ahead(connection: SqliteConnection) -> None:
    """Switch a database to write-ahead logging; of two that switch a new one, SQLite refuses one without waiting."""
    until = time.monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except SqliteError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.02)
        else:
            return


def _postgresql(url: sa.URL) -> Engine:
    try:
        return sa.create_engine(url, pool_pre_ping=True)
    except ModuleNotFoundError:
        raise StoreUnusable(
            'PostgreSQL needs its driver; install it with `pip install "knowngood[postgres]"`'
        ) from None


@contextmanager
def unit_of_work(engine: Engine, *, wait_s: float = _BUSY_TIMEOUT_S) -> Iterator[Session]:
    """One transaction that writes: committed once when the block ends, rolled back when it raises.

    `wait_s` is how long it waits for another writer on SQLite, before it raises StoreUnusable.
    """
    with _session(engine.execution_options(**{_WRITES: True, _WAIT_S: wait_s})) as session, session.begin():
        yield session


@contextmanager
def reading(engine: Engine) -> Iterator[Session]:
    """One consistent view of the database; nothing is written."""
    if engine.dialect.name == "postgresql":
        engine = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    with _session(engine) as session:
        yield session


@contextmanager
def _session(engine: Engine) -> Iterator[Session]:
    try:
        with Session(engine, autoflush=False) as session:
            yield session
    except sa.exc.OperationalError as error:
        raise StoreUnusable(_in_words(engine, error)) from error


def migrate(engine: Engine) -> None:
    """Bring the database to this release's tables; does nothing where it is there already.

    Two processes that start together wait for each other. Raises StoreUnusable for a foreign or a newer database.
    """
    try:
        with _exclusively(engine) as connection:
            _refuse_unknown(connection)
            command.upgrade(_alembic(connection), "head")
    except DBAPIError as error:
        raise StoreUnusable(_in_words(engine, error)) from error


def require_current(engine: Engine) -> None:
    """Refuse a database whose tables are not this release's; say what to do."""
    try:
        with engine.connect() as connection:
            _refuse_unknown(connection)
            revision = _revision(connection)
    except DBAPIError as error:
        raise StoreUnusable(_in_words(engine, error)) from error
    if revision != _scripts().get_current_head():
        state = "has no tables yet" if revision is None else "is of an older release"
        raise StoreUnusable(f"the database {_name(engine)} {state}; run `knowngood migrate`")


@contextmanager
def _exclusively(engine: Engine) -> Iterator[Connection]:
    """A connection in a transaction of its own that no second migration can enter.

    SQLite rebuilds a table by copying and dropping it; with foreign keys enforced that would delete what points to it,
    and the switch works only outside a transaction.
    """
    with engine.execution_options(**{_WRITES: True}).connect() as connection:
        if engine.dialect.name == "sqlite":
            driver = cast(SqliteConnection, connection.connection.driver_connection)
            driver.execute("PRAGMA foreign_keys = OFF")
            try:
                with connection.begin():
                    yield connection
                    _refuse_broken_references(connection)
            finally:
                driver.execute("PRAGMA foreign_keys = ON")
        else:
            with connection.begin():
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
                yield connection


def _refuse_broken_references(connection: Connection) -> None:
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    if broken is not None:
        raise StoreUnusable(f"migrating would leave rows of {broken[0]} that point nowhere; nothing was changed")


def _refuse_unknown(connection: Connection) -> None:
    revision = _revision(connection)
    if revision is None:
        tables = sa.inspect(connection).get_table_names()
        if tables:
            raise StoreUnusable(
                f"the database {_name(connection.engine)} belongs to something else (it has a table {min(tables)}); "
                "give Known Good a database of its own"
            )
    elif revision not in {script.revision for script in _scripts().walk_revisions()}:
        raise StoreUnusable(
            f"the database {_name(connection.engine)} was written by a newer release of Known Good "
            f"(its tables are at {revision}, which this release does not know); install that release"
        )


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(_MIGRATIONS))


def _alembic(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _name(engine: Engine) -> str:
    return engine.url.database or engine.url.render_as_string(hide_password=True)


def _in_words(engine: Engine, error: SQLAlchemyError) -> str:
    reason: Any = getattr(error, "orig", None) or error
    first = str(reason).strip().partition("\n")[0]
    return f"the database {_name(engine)} cannot be used: {first}"
