"""Parts of statements that many questions and writes share."""

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa

from knowngood.domain.verdicts.verdict import CellPlace
from knowngood.store.engine import Session

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
    """In their order, so many at once."""
    return (values[start : start + size] for start in range(0, len(values), size))
