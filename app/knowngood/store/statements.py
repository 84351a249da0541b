"""Parts of statements that many questions and writes share."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection

from knowngood.domain.verdicts.verdict import CellPlace
from knowngood.store.engine import Session
from knowngood.store.tables import Json, UtcDateTime

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert as PostgresqlInsert
    from sqlalchemy.dialects.sqlite import Insert as SqliteInsert

_T = TypeVar("_T")


def insert_or(s: Session, table: sa.Table) -> "PostgresqlInsert | SqliteInsert":
    """An insert that can say what to do where the key is there already: both databases spell that alike."""
    from sqlalchemy.dialects import postgresql, sqlite

    return postgresql.insert(table) if s.dialect.name == "postgresql" else sqlite.insert(table)


def among(*wanted: tuple[sa.ColumnElement[Any], Collection[Any] | None]) -> list[sa.ColumnElement[bool]]:
    """Conditions that each column holds one of its words; None stands for all there are."""
    return [column.in_(sorted(words)) for column, words in wanted if words is not None]


def place_of(table: sa.Table) -> tuple[sa.Column[Any], ...]:
    """The columns that name a cell, in the order of `CellKey`."""
    return (table.c.issue, table.c.build, table.c.hardware)


def is_of(place: CellPlace, table: sa.Table) -> list[sa.ColumnElement[bool]]:
    """Conditions that a row is of this cell."""
    return [column == name for column, name in zip(place_of(table), place, strict=True)]


def number_of(s: Session, rows: sa.Select[Any]) -> int:
    return s.execute(sa.select(sa.func.count()).select_from(rows.subquery())).scalar_one()


def counted(s: Session, *columns: sa.Column[Any], which: sa.ColumnElement[bool] | None = None) -> list[Any]:
    """The values that these columns have, in their order, each with the number of its rows."""
    query = sa.select(*columns, sa.func.count()).group_by(*columns).order_by(*columns)
    return list(s.execute(query if which is None else query.where(which)))


def pieces(values: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    """The values in their order, `size` at once."""
    return (values[start : start + size] for start in range(0, len(values), size))


# Many rows in one statement, past what SQLAlchemy does for each of them.
#
# Of what an import writes, its work per row (parameters by name, types by column) took longer than the database did:
# 0.5 s of a processor beside 0.4 s for 9,000 attempts with their logs (SQLite, 2026-11-21).


Row = Sequence[Any]


def insert(s: Session, table: sa.Table, rows: Sequence[Row], names: Sequence[str] = ()) -> None:
    """Insert rows, each with a value for every column of the table (or for those of these names), in this order.

    What a column has by default only the database fills in. Raises what SQLAlchemy raises, as for a key that is there
    already.
    """
    if not rows:
        return
    columns = [table.c[name] for name in names or table.columns.keys()]
    into = f"{table.name} ({', '.join(column.name for column in columns)})"
    written = _written(s.dialect.name, columns, rows)
    if s.dialect.name == "postgresql":
        _copy(s, into, written)
    else:
        marks = ", ".join("?" for _ in columns)
        s.exec_driver_sql(f"INSERT INTO {into} VALUES ({marks})", written)  # noqa: S608 - names of our tables


def _copy(connection: Connection, into: str, rows: Iterable[Row]) -> None:
    """COPY takes a third to a half of the time of INSERT; the driver's errors become SQLAlchemy's, as everywhere."""
    statement = f"COPY {into} FROM STDIN"
    if not connection.in_transaction():
        connection.begin()  # the driver is spoken to directly: nobody else would begin what is to be committed
    driver: Any = connection.connection.driver_connection
    error_of_driver = connection.dialect.loaded_dbapi.Error
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
    except error_of_driver as error:
        raise sa.exc.DBAPIError.instance(
            statement, None, error, error_of_driver, hide_parameters=True, dialect=connection.dialect
        ) from error


def _written(dialect: str, columns: Sequence[sa.Column[Any]], rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """The rows as the driver takes them."""
    writers = [(at, _writer(dialect, column)) for at, column in enumerate(columns)]
    needed = [(at, write) for at, write in writers if write]
    written = []
    for row in rows:
        values = list(row)
        for at, write in needed:
            if values[at] is not None:
                values[at] = write(values[at])
        written.append(tuple(values))
    return written


def _writer(dialect: str, column: sa.Column[Any]) -> Callable[[Any], object] | None:
    """A function that turns a value into the driver's form, as the column's type would; None where it takes it as it
    is.
    """
    if isinstance(column.type, Json):
        return _json
    if dialect == "sqlite" and isinstance(column.type, UtcDateTime):
        return _stored_time
    return None


def _json(value: object) -> str:
    return "{}" if value == {} else json.dumps(value)  # nearly all attempts have no labels


def _stored_time(value: datetime) -> str:
    """A time as SQLAlchemy writes it into SQLite, where they are compared as text: UTC, without saying so."""
    return value.astimezone(UTC).isoformat(" ", "microseconds")[:26]


def given(s: Session, names: Sequence[str], rows: Sequence[Sequence[str]]) -> sa.FromClause:
    """Rows of text that stand in no table, to be joined with one.

    They are one value, whatever their number: the statement stays the same, so that it is made once, and a list of
    thousands meets no limit of parameters.
    """
    if s.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import ARRAY

        columns = [[row[at] for row in rows] for at in range(len(names))]
        arrays = [sa.literal(column, ARRAY(sa.Text)) for column in columns]
        return sa.func.unnest(*arrays).table_valued(*names, name="given").render_derived()
    listed = sa.func.json_each(json.dumps(list(rows))).table_valued("value", name="listed")
    parts = [
        sa.func.json_extract(listed.c.value, sa.literal_column(f"'$[{at}]'"), type_=sa.Text).label(name)
        for at, name in enumerate(names)
    ]
    return sa.select(*parts).subquery("given")
