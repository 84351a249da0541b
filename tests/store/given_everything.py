"""A store with rows in every table, made through its own doors where it has one, and values that are hard to carry."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from knowngood.domain.access import Scope
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.tables import Json, audit, logs, metadata, notes
from tests.make import NOON
from tests.web import given

# What PostgreSQL's COPY, JSON, SQLite and line ends have a meaning for.
ODD_TEXT = "a\tb\\N\n\\.\n\"quoted\" 'single' \x7f \u2028 \U0001f600 é %s {} \r\n\\x00"
ODD_JSON = {"z": 1, "a": [None, True, 0.1, 2**60, ODD_TEXT, "\0"], "": {}}
ODD_BYTES = bytes(range(256)) * 3

Rows = dict[str, list[dict[str, Any]]]


def fill_everything(engine: Engine) -> None:
    """No table stays empty: one that a release adds is filled with something of each column's type."""
    given.fill(engine)
    given.make_token(engine, Scope.READ)
    with unit_of_work(engine) as s:
        s.execute(sa.insert(notes).values(**_row(s, notes), reason=ODD_TEXT))
        s.execute(sa.insert(logs).values(digest="0dd", zlib=ODD_BYTES))
        s.execute(sa.insert(audit).values(**{**_row(s, audit), "data": ODD_JSON}))
        for table in metadata.sorted_tables:
            if s.execute(sa.select(sa.func.count()).select_from(table)).scalar_one() == 0:
                s.execute(sa.insert(table).values(**_row(s, table)))


def _row(connection: sa.Connection, table: sa.Table) -> dict[str, Any]:
    """A row that the table takes; what is counted up or may be missing is left out."""
    chosen: dict[str, Any] = {}
    for key in table.foreign_key_constraints:
        there = connection.execute(sa.select(*[element.column for element in key.elements]).limit(1)).one()
        chosen |= dict(zip(key.column_keys, there, strict=True))
    words = {"kind": "annotate", "state": "waiting", "clock": "measured"}
    for column in table.columns:
        is_made = column.nullable or (column.primary_key and isinstance(column.type, sa.BigInteger))
        if column.name not in chosen and not is_made and (table.name, column.name) != ("notes", "reason"):
            chosen[column.name] = words.get(column.name) or _value(column.type)
    return chosen


def _value(kind: sa.types.TypeEngine[Any]) -> object:
    samples: list[tuple[Any, object]] = [
        (sa.Boolean, True),
        (sa.Integer, 7),
        (sa.Float, 0.1),
        (sa.LargeBinary, ODD_BYTES),
        (Json, ODD_JSON),
        (sa.String, "sample"),
    ]
    return next((sample for known, sample in samples if isinstance(kind, known)), NOON + timedelta(microseconds=1))


def rows_of(engine: Engine) -> Rows:
    """Every row of every table, as values."""
    with reading(engine) as s:
        return {
            table.name: [dict(row) for row in s.execute(sa.select(table)).mappings()]
            for table in metadata.sorted_tables
        }


def comparable(rows: Rows) -> Mapping[str, Any]:
    """Less what a restore itself moves: the store's generation, and the entry of the audit log that says so."""
    told = {name: sorted(({**row} for row in listed), key=_key) for name, listed in rows.items() if name != "meta"}
    told["audit"] = [row for row in told["audit"] if row["action"] != "store.restore"]
    for cell in told["cells"]:
        del cell["changed"]
    return told


def _key(row: Mapping[str, Any]) -> str:
    return repr([(name, value.isoformat() if isinstance(value, datetime) else value) for name, value in row.items()])
