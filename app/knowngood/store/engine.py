"""Opening the database, and the two ways to use it: a unit of work that commits once at the edge, and a reading."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection as SqliteConnection
from sqlite3 import OperationalError as SqliteError
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from knowngood.domain.errors import StoreUnusable
from knowngood.domain.verdicts.verdict import RULES
from knowngood.installation import how_to_install
from knowngood.sqlite_file import is_read_only, open_to_read
from knowngood.store.tables import REVISIONS, RULES_IN_META, meta

__all__ = [
    "Connection",
    "Engine",
    "Session",
    "connect",
    "in_words",
    "is_current",
    "is_of_older_rules",
    "may_write",
    "name_of",
    "reading",
    "rebuilding",
    "refuse_foreign",
    "require_current",
    "revision_of",
    "unit_of_work",
]

Session = Connection
"""What the store's functions are given: a transaction that begins with the first statement, to write or to read in."""


_WRITES = "knowngood_writes"
_READ_ONLY = "knowngood_read_only"
_WAIT_S = "knowngood_wait_s"
_BUSY_TIMEOUT_S = 60  # importing a large bundle holds the only write lock for that long on a slow host
_MIGRATION_LOCK = 0x6B6E_6F77  # any constant of ours: PostgreSQL's advisory locks are numbers
_MIGRATION_PATIENCE_S = 10  # while a change of a table waits for its readers, everybody else waits behind it

# A web process answers in up to 40 threads, each with a connection for some milliseconds; two of them and a dispatcher
# stay below the 100 connections that a PostgreSQL server takes unless told otherwise.
_CONNECTIONS_OPEN, _CONNECTIONS_MORE, _CONNECTION_WAIT_S = 5, 15, 20

# How long a PostgreSQL server lets one of ours hold others up. Whatever the address says in its own `options` wins.
_LIMITS = {
    "lock_timeout": f"{_BUSY_TIMEOUT_S}s",  # SQLite's waiting, by its name here
    "statement_timeout": "10min",
    # A process that was stopped or lost inside a transaction would hold the one lock that all writers need.
    "idle_in_transaction_session_timeout": "5min",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "client_connection_check_interval": "10s",
}

# How soon our side notices that the server is gone, where no answer says so. Seconds, but the last: milliseconds.
_PATIENCE = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
    "application_name": "knowngood",
}

_BUSY = "55P03"  # lock_not_available
_TOO_LONG = "57014"  # query_canceled
# What PostgreSQL calls a fault of the program, and what to whoever runs it is a database that cannot be used.
_NOT_AS_MIGRATED = {"42501": "the role of the address may not do that", "42P01": "a table is missing"}
_FAILED = (
    sa.exc.OperationalError,
    sa.exc.InterfaceError,
    sa.exc.InternalError,
    sa.exc.ProgrammingError,
    sa.exc.TimeoutError,
)


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
    file = Path(url.database or "")
    if url.database and is_read_only(file):
        return _sqlite_as_it_lies(url, file)
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


def _sqlite_as_it_lies(url: sa.URL, file: Path) -> Engine:
    """A file that may not be written. Each reading opens it anew: somebody else may have begun to write it."""
    return sa.create_engine(
        url,
        creator=lambda: open_to_read(file, timeout_s=_BUSY_TIMEOUT_S),
        poolclass=sa.NullPool,
        execution_options={_READ_ONLY: True},
    )


def identity_of(engine: Engine) -> tuple[int, int] | None:
    """Device and inode of an SQLite store's file; None where there is none, and for a server's database."""
    if engine.dialect.name != "sqlite" or not engine.url.database:
        return None
    try:
        status = Path(engine.url.database).stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def may_write(engine: Engine) -> bool:
    """Whether this store can be written from here, as far as its file says."""
    return not engine.get_execution_options().get(_READ_ONLY, False)


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
    if url.drivername not in {"postgresql", "postgresql+psycopg"}:
        raise StoreUnusable(f'"{url.drivername}" names another driver; write postgresql://...')
    try:
        engine = sa.create_engine(
            url,
            # A connection that the server closed, as when it was started anew, is replaced before it is used.
            pool_pre_ping=True,
            pool_size=_CONNECTIONS_OPEN,
            max_overflow=_CONNECTIONS_MORE,
            pool_timeout=_CONNECTION_WAIT_S,
            connect_args=_arguments(url),
        )
    except ModuleNotFoundError:
        raise StoreUnusable(f"PostgreSQL needs its driver; {how_to_install('postgres')}") from None

    @sa.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        wait_s = connection.get_execution_options().get(_WAIT_S, _BUSY_TIMEOUT_S)
        if wait_s != _BUSY_TIMEOUT_S:
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {max(1, round(wait_s * 1000))}")

    return engine


def _arguments(url: sa.URL) -> dict[str, str]:
    """The driver's arguments beside the address; where the address says otherwise, it wins."""
    limits = " ".join(f"-c {name}={value}" for name, value in _LIMITS.items())
    own = url.query.get("options", "")
    given = own if isinstance(own, str) else " ".join(own)
    patience = {name: value for name, value in _PATIENCE.items() if name not in url.query}
    return {**patience, "options": f"{limits} {given}".strip()}


@contextmanager
def unit_of_work(engine: Engine, *, wait_s: float = _BUSY_TIMEOUT_S, dry_run: bool = False) -> Iterator[Session]:
    """One transaction that writes: committed once when the block ends, rolled back when it raises.

    `wait_s` is how long it waits for another writer before it raises StoreUnusable. With `dry_run` all is done and
    taken back at the end, so that nothing is told that would not happen.
    """
    if not may_write(engine):
        raise StoreUnusable(
            f"the database {name_of(engine)} may only be read here, and this would write: "
            "make its file and its folder writable, or set KNOWNGOOD_DATA_DIR to a folder that is"
        )
    with _session(engine.execution_options(**{_WRITES: True, _WAIT_S: wait_s})) as session:
        yield session
        if not dry_run:  # closed without a commit, a connection takes back what was done
            session.commit()


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
        with engine.connect() as session:
            yield session
    except _FAILED as error:
        if isinstance(error, sa.exc.ProgrammingError) and _sqlstate(error) not in _NOT_AS_MIGRATED:
            raise
        raise StoreUnusable(in_words(engine, error)) from error


def require_current(engine: Engine) -> None:
    """Refuse a database whose tables, or whose verdicts, are not this release's; say what to do."""
    try:
        with engine.connect() as connection:
            refuse_foreign(connection)
            revision = revision_of(connection)
            is_of_older = revision == REVISIONS[-1] and is_of_older_rules(connection)
    except DBAPIError as error:
        raise StoreUnusable(in_words(engine, error)) from error
    if revision != REVISIONS[-1]:
        state = "has no tables yet" if revision is None else "is of an older release"
        raise StoreUnusable(f"the database {name_of(engine)} {state}; run `knowngood migrate`")
    if is_of_older:
        raise StoreUnusable(
            f"the database {name_of(engine)} holds verdicts of an older release's rules; run `knowngood migrate`"
        )


def is_current(engine: Engine) -> bool:
    """Whether tables and verdicts are this release's, so that there is nothing to bring up."""
    try:
        with engine.connect() as connection:
            return revision_of(connection) == REVISIONS[-1] and not is_of_older_rules(connection)
    except DBAPIError as error:
        raise StoreUnusable(in_words(engine, error)) from error


def is_of_older_rules(connection: Connection) -> bool:
    """Whether the store's cells were derived by an older release's rules."""
    query = sa.select(meta.c.value).where(meta.c.name == RULES_IN_META)
    rules: int | None = connection.execute(query).scalar_one_or_none()
    return rules is None or rules < RULES  # a store of an older release says nothing of rules


@contextmanager
def rebuilding(engine: Engine) -> Iterator[Connection]:
    """A connection in a transaction of its own that changes tables and that no second one can enter.

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
                for limit in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"):
                    connection.exec_driver_sql(f"SET LOCAL {limit} = 0")
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_MIGRATION_PATIENCE_S}s'")
                yield connection


def _refuse_broken_references(connection: Connection) -> None:
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    if broken is not None:
        raise StoreUnusable(f"migrating would leave rows of {broken[0]} that point nowhere; nothing was changed")


def refuse_foreign(connection: Connection) -> None:
    """Raise StoreUnusable where the tables are something else's, or of a release that this one does not know."""
    revision = revision_of(connection)
    if revision is None:
        tables = sa.inspect(connection).get_table_names()
        if tables:
            raise StoreUnusable(
                f"the database {name_of(connection.engine)} belongs to something else (it has a table {min(tables)}); "
                "give Known Good a database of its own"
            )
    elif revision not in REVISIONS:
        raise StoreUnusable(
            f"the database {name_of(connection.engine)} was written by a newer release of Known Good "
            f"(its tables are at {revision}, which this release does not know); install that release"
        )


def revision_of(connection: Connection) -> str | None:
    """The migration that the tables are at; None where there is none."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return cast("str | None", connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar())


def name_of(engine: Engine) -> str:
    """The database as sentences call it, without a password."""
    return engine.url.database or engine.url.render_as_string(hide_password=True)


def in_words(engine: Engine, error: SQLAlchemyError) -> str:
    """An error of the driver as a sentence."""
    reason: Any = getattr(error, "orig", None) or error
    first = str(reason).strip().partition("\n")[0]
    name, state = name_of(engine), _sqlstate(error)
    if isinstance(error, sa.exc.TimeoutError):
        return f"every connection to the database {name} that this process may have is in use; try again"
    if state == _BUSY or "database is locked" in first:
        return f"the database {name} is busy: another writer held it for longer than this one waits; try again"
    if state == _TOO_LONG:
        return f"the database {name} gave a statement up: {first}"
    if state in _NOT_AS_MIGRATED:
        return f"the database {name} cannot be used: {_NOT_AS_MIGRATED[state]} ({first})"
    return f"the database {name} cannot be used: {first}"


def _sqlstate(error: SQLAlchemyError) -> str:
    """PostgreSQL's code of five characters for what went wrong; empty where there are none."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) or ""
