"""The whole store into one file and back, on either database: a backup, and the move from one database to the other.

The tables are taken as the database has them, not as `tables` says, so that a store can be backed up before it is
migrated, and a backup of an older release is restored at its own revision and migrated after that.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from knowngood.app.domain.access import Actor
from knowngood.app.domain.errors import BadBackup, StoreUnusable
from knowngood.app.features.backup.format import (
    BackupHeader,
    CheckedBackup,
    Row,
    RowTally,
    TableHead,
    Total,
    check_backup,
    read_tables,
    row_line,
    write_backup,
)
from knowngood.app.store import audit_log
from knowngood.app.store.engine import (
    Connection,
    Engine,
    in_words,
    name_of,
    reading,
    rebuilding,
    refuse_foreign,
    revision_of,
)
from knowngood.app.store.state.migrations import upgrade_to
from knowngood.app.store.state.revisions import is_known
from knowngood.app.store.tables import cells, meta

_ROWS_AT_ONCE = 100  # a row may be a log of a MiB

_VERSIONS = "alembic_version"
# What `migrate` and an idle server leave in a store that nobody has used yet: it may be restored over.
_MADE_BY_ITSELF = {"meta", "issues", "issue_revisions", "builds", "cells", "events", "leases"}


def back_up(engine: Engine, out: BinaryIO, *, now: datetime, release: str) -> CheckedBackup:
    """Write all rows as of one moment, while others go on writing; tell what was written.

    Raises StoreUnusable where there is no store, or one of a release that this one does not know.
    """
    with reading(engine) as s:
        connection = s
        refuse_foreign(connection)
        revision = revision_of(connection)
        if revision is None:
            raise StoreUnusable(f"the database {name_of(engine)} has no tables: there is nothing to back up")
        header = BackupHeader(now, release, revision, engine.dialect.name)
        return write_backup(
            out, header, ((_head(connection, one), _rows(connection, one)) for one in _tables(connection))
        )


def restore(engine: Engine, path: Path, *, by: Actor, now: datetime, force: bool = False) -> CheckedBackup:
    """Make the store what a backup holds, in one transaction; tell what was restored.

    What was written is read again and compared with the backup before it counts. A store that holds anything of
    anybody's is refused (StoreUnusable) unless `force`, with which all of it goes. Raises BadBackup for a file that is
    damaged or of tables that this release does not know, and changes nothing.

    Afterwards the store's generation is beyond any that it ever had: no page that was kept before is shown again, and
    every cell counts as changed. The audit log has one row more, which says so.
    """
    checked = check_backup(path)
    if not is_known(checked.header.schema):
        raise BadBackup(
            f"{path.name} was made by release {checked.header.release} and holds tables at {checked.header.schema}, "
            "which this release does not know; restore it with that release"
        )
    try:
        with rebuilding(engine) as connection:
            refuse_foreign(connection)
            _clear(connection, force=force)
            upgrade_to(connection, checked.header.schema)
            _fill(connection, checked)
            _compare(connection, checked)
            upgrade_to(connection, "head")
            _move_on(connection, checked, by, now)
    except DBAPIError as error:
        raise StoreUnusable(in_words(engine, error)) from error
    return checked


# -- out ---------------------------------------------------------------------------------------------------------------


def _tables(connection: Connection) -> list[sa.Table]:
    """The tables that there are, those that are referred to first."""
    found = sa.MetaData()
    found.reflect(connection)
    return [table for table in found.sorted_tables if table.name != _VERSIONS]


def _columns(table: sa.Table) -> list[sa.Column[Any]]:
    """By name: where a column stands depends on how the table came about."""
    return sorted(table.columns, key=lambda column: column.name)


def _head(connection: Connection, table: sa.Table) -> TableHead:
    columns = tuple(str(one.name) for one in _columns(table))  # SQLAlchemy's own kind of text, else
    return TableHead(str(table.name), columns, _last_id(connection, table))


def _rows(connection: Connection, table: sa.Table) -> Iterator[Row]:
    columns = _columns(table)
    query = sa.select(*[_as_stored(column) for column in columns]).order_by(*_bytewise(connection, table))
    writers = [_writer(column) for column in columns]
    for row in connection.execute(query, execution_options={"yield_per": _ROWS_AT_ONCE}):
        yield [
            write(value) if write and value is not None else value for write, value in zip(writers, row, strict=True)
        ]


def _as_stored(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    return sa.cast(column, sa.Text) if isinstance(column.type, sa.JSON) else column


def _bytewise(connection: Connection, table: sa.Table) -> Iterator[sa.ColumnElement[Any]]:
    """The primary key in SQLite's order: PostgreSQL's own depends on the language it was set up with."""
    for column in table.primary_key:
        is_words = connection.dialect.name == "postgresql" and isinstance(column.type, sa.String)
        yield sa.collate(column, "C") if is_words else column


def _writer(column: sa.Column[Any]) -> Callable[[Any], object] | None:
    if isinstance(column.type, sa.DateTime):
        return _written_time
    if isinstance(column.type, sa.LargeBinary):
        return lambda value: b64encode(value).decode()
    return None


def _written_time(value: datetime) -> str:
    """SQLite keeps UTC without saying so."""
    return (
        (value if value.tzinfo is None else value.astimezone(UTC))
        .replace(tzinfo=UTC)
        .isoformat(timespec="microseconds")
    )


def _last_id(connection: Connection, table: sa.Table) -> int | None:
    """The last id that the table's counter gave out. Rows may be gone; their ids are not given again."""
    if connection.dialect.name == "sqlite":
        query = sa.text("SELECT seq FROM sqlite_sequence WHERE name = :name")
        return connection.execute(query, {"name": table.name}).scalar_one_or_none()
    counter = _counter(connection, table)
    if counter is None:
        return None
    given = connection.exec_driver_sql(f"SELECT last_value, is_called FROM {counter}")  # noqa: S608 - quoted by the server
    last, is_given = given.one()
    return last if is_given else None


def _counter(connection: Connection, table: sa.Table) -> str | None:
    """The sequence behind the primary key, on PostgreSQL; its name is quoted where need be."""
    key = next(iter(table.primary_key))
    found = sa.select(sa.func.pg_get_serial_sequence(_quoted(connection, table.name), key.name))
    name: str | None = connection.execute(found).scalar_one()
    return name


# -- in ----------------------------------------------------------------------------------------------------------------


def _clear(connection: Connection, *, force: bool) -> None:
    """Leave the database without a table. Raises StoreUnusable where that would lose something and is not asked for."""
    found = sa.MetaData()
    found.reflect(connection)
    held = {table.name: _count(connection, table) for table in found.sorted_tables if table.name != _VERSIONS}
    filled = [f"{rows} {name}" for name, rows in held.items() if rows and name not in _MADE_BY_ITSELF]
    if filled and not force:
        raise StoreUnusable(
            f"the database {name_of(connection.engine)} is not empty: it holds {', '.join(filled)}; restore into a new "
            "one, or say --force to remove all of that"
        )
    found.drop_all(connection)


def _count(connection: Connection, table: sa.Table) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def _fill(connection: Connection, checked: CheckedBackup) -> None:
    """Put every row where it was."""
    tables = {table.name: table for table in _tables(connection)}
    if tables.keys() != checked.tables.keys():
        raise BadBackup(f"{checked.path.name} holds other tables than there are at {checked.header.schema}")
    for table in reversed(tables.values()):
        connection.execute(sa.delete(table))  # the one row that the migrations make
    for head, rows in read_tables(checked):
        table = tables[head.name]
        if list(head.columns) != [column.name for column in _columns(table)]:
            raise BadBackup(f"{checked.path.name} holds other columns of {head.name} than there are at its revision")
        _insert(connection, table, rows)
        _count_on(connection, table, head.last_id)


def _insert(connection: Connection, table: sa.Table, rows: Iterable[Row]) -> None:
    dialect = connection.dialect
    readers = [_reader(dialect.name, column) for column in _columns(table)]
    values = (
        tuple(read(value) if read and value is not None else value for read, value in zip(readers, row, strict=True))
        for row in rows
    )
    into = f"{_quoted(connection, table.name)} ({', '.join(_quoted(connection, one.name) for one in _columns(table))})"
    driver: Any = connection.connection.driver_connection
    errors = (dialect.loaded_dbapi.Error, TypeError, ValueError)
    try:
        if dialect.name == "postgresql":
            with driver.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN") as copy:
                for row in values:
                    copy.write_row(row)
        else:
            marks = ", ".join("?" for _ in readers)
            while some := list(islice(values, _ROWS_AT_ONCE)):
                driver.executemany(f"INSERT INTO {into} VALUES ({marks})", some)  # noqa: S608 - names of our own tables
    except errors as error:
        first = str(error).partition("\n")[0]
        raise BadBackup(f"rows of {table.name} cannot be kept in this database: {first}") from error


def _reader(dialect: str, column: sa.Column[Any]) -> Callable[[Any], object] | None:
    """A function that turns a value of the file into the driver's form; PostgreSQL reads times and JSON by itself."""
    if isinstance(column.type, sa.LargeBinary):
        return b64decode
    if isinstance(column.type, sa.DateTime) and dialect == "sqlite":
        return _stored_time
    return None


def _stored_time(text: str) -> str:
    """As SQLAlchemy writes times into SQLite, where they are compared as text."""
    return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def _count_on(connection: Connection, table: sa.Table, last_id: int | None) -> None:
    """Let the table's counter go on where it was."""
    if last_id is None:
        return
    if connection.dialect.name == "postgresql":
        counter = _counter(connection, table)
        if counter is not None:
            connection.execute(sa.select(sa.func.setval(counter, last_id)))
        return
    at = {"name": table.name, "last": last_id}
    connection.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = :name"), at)
    connection.execute(sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)"), at)


def _compare(connection: Connection, checked: CheckedBackup) -> None:
    """Read everything again: what the database keeps is what the backup holds."""
    for table in _tables(connection):
        tally = RowTally(_last_id(connection, table))
        for row in _rows(connection, table):
            tally.add(row_line(row))
        if tally.total() != checked.tables[table.name]:
            raise BadBackup(
                f"{table.name} did not come out of the database as it went in: {_told(tally.total())} instead of "
                f"{_told(checked.tables[table.name])}; nothing was restored"
            )


def _told(total: Total) -> str:
    return f"{total.rows} rows with SHA-256 {total.sha256[:12]}"


def _move_on(connection: Connection, checked: CheckedBackup, by: Actor, now: datetime) -> None:
    """Leave behind every generation that any process or browser may have seen of this store or of the one before.

    Milliseconds since 1970: a store that writes less than a thousand times a second stays below them.
    """
    generation = sa.select(meta.c.value).where(meta.c.name == "generation")
    beyond = max(connection.execute(generation).scalar_one() + 1, int(now.timestamp() * 1000))
    connection.execute(sa.update(meta).where(meta.c.name == "generation").values(value=beyond))
    connection.execute(sa.update(cells).values(changed=beyond))
    taken = checked.header.taken_at.isoformat(timespec="seconds")
    audit_log.note(connection, by, "store.restore", checked.sha256, now, taken_at=taken, rows=checked.rows)


def _quoted(connection: Connection, name: str) -> str:
    return connection.dialect.identifier_preparer.quote(name)
