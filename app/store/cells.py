"""Cells as stored: derived whenever evidence or catalogue changes, so that reading them costs no history."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.domain.build import Build
from app.domain.issue import Issue
from app.domain.job import Attempt
from app.domain.verdict import Cell, derive_cell
from app.formats import wire
from app.store import evidence
from app.store.rows import CellChange
from app.store.tables import attempts, builds, cells, events, issues, logs, meta

_CELLS_AT_ONCE = 50


@dataclass(frozen=True, order=True)
class CellKey:
    issue: str
    build: str
    hardware: str


def touch(s: Session) -> None:
    """Say that pages may look different now. Every write that they can see begins with this.

    It also is the lock that puts such writes in a row on PostgreSQL, as BEGIN IMMEDIATE does on SQLite: a cell is
    derived from all evidence committed before, and event ids appear in the order of commit.
    """
    s.execute(sa.update(meta).where(meta.c.name == "generation").values(value=meta.c.value + 1))


def announce(s: Session, kind: str, now: datetime, *, run: str = "", **data: object) -> None:
    """Append an event for whoever follows along."""
    s.execute(sa.insert(events).values(at=now, run=run, kind=kind, data=data))


def insert_missing(s: Session, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Insert the rows whose primary key is not there yet; the first key column of those that were."""
    if not rows:
        return []
    dialect = postgresql if s.get_bind().dialect.name == "postgresql" else sqlite
    key = next(iter(table.primary_key.columns))
    statement = dialect.insert(table).on_conflict_do_nothing().returning(key)
    return list(s.connection().execute(statement, rows).scalars())


class Catalogue:
    """The present catalogue by key; each document is asked for at most once."""

    def __init__(self, s: Session) -> None:
        self._s = s
        self._docs: dict[tuple[str, str], str | None] = {}
        self._bindings: dict[tuple[str, str], Mapping[tuple[str, str], str] | None] = {}

    def find(self, key: CellKey) -> tuple[Issue, Build] | None:
        issue, build = self._doc(issues, key.issue), self._doc(builds, key.build)
        return (evidence.parse_issue(issue), evidence.parse_build(build)) if issue and build else None

    def bindings(self, key: CellKey) -> Mapping[tuple[str, str], str] | None:
        """What attempts of this cell must be bound to; None where the catalogue does not know issue or build."""
        place = (key.issue, key.build)
        if place not in self._bindings:
            known = self.find(key)
            self._bindings[place] = evidence.current_bindings(*known) if known else None
        return self._bindings[place]

    def _doc(self, table: sa.Table, id_: str) -> str | None:
        place = (table.name, id_)
        if place not in self._docs:
            query = sa.select(table.c.doc).where(table.c.id == id_, table.c.is_present)
            self._docs[place] = self._s.execute(query).scalar_one_or_none()
        return self._docs[place]


def rederive(
    s: Session, keys: Iterable[CellKey], now: datetime, catalogue: Catalogue | None = None
) -> tuple[CellChange, ...]:
    """Derive cells anew from their evidence, store what differs, and tell it; unknown issues are passed over."""
    catalogue = catalogue or Catalogue(s)
    changes: list[CellChange] = []
    for _, of_issue in groupby(sorted(set(keys)), key=lambda key: key.issue):
        known = [key for key in of_issue if catalogue.find(key) is not None]
        for start in range(0, len(known), _CELLS_AT_ONCE):
            changes += _rederive_some(s, catalogue, known[start : start + _CELLS_AT_ONCE])
    _announce_changes(s, changes, now)
    return tuple(changes)


@dataclass(frozen=True)
class _Listed:
    """An attempt without its evidence."""

    id: str
    arm: str
    variant: str
    binding: str
    counts_as: str | None


def _rederive_some(s: Session, catalogue: Catalogue, keys: Sequence[CellKey]) -> list[CellChange]:
    """Cells of one issue, few enough for their evidence to be held in memory together."""
    listed = _load_listed(s, keys)
    wanted = {key: catalogue.bindings(key) or {} for key in keys}
    counted = _load_counted(s, keys, wanted)
    before = _load_docs(s, keys)
    derived = {key: _derive(catalogue, key, listed[key], counted[key]) for key in keys}
    _mark(s, derived.values())
    after = {key: one.doc for key, one in derived.items() if one.doc}
    _store(s, {key: derived[key] for key in keys if before.get(key) != after.get(key)})
    return [
        CellChange(
            key.issue,
            key.build,
            key.hardware,
            evidence.parse_cell(before[key]) if key in before else None,
            derived[key].cell,
        )
        for key in keys
        if before.get(key) != after.get(key)
    ]


@dataclass(frozen=True)
class _Derived:
    """A cell with its text (none where there is no attempt), and the attempts whose mark is out of date."""

    cell: Cell | None
    doc: str | None
    marks: tuple[dict[str, str | None], ...]


def _derive(
    catalogue: Catalogue, key: CellKey, listed: Sequence[_Listed], counted: Sequence[tuple[Attempt, str]]
) -> _Derived:
    known = catalogue.find(key)
    if known is None or not listed:
        return _Derived(None, None, ())
    judged = evidence.judge_all(counted, *known)
    outcomes = {one.attempt: one.outcome.value for one in judged}
    cell = derive_cell(*known, key.hardware, judged, superseded=len(listed) - len(counted))
    return _Derived(
        cell=cell,
        doc=wire.CELL.dump_json(cell, exclude_defaults=True).decode(),
        marks=tuple(
            {"key": one.id, "outcome": outcomes.get(one.id)} for one in listed if outcomes.get(one.id) != one.counts_as
        ),
    )


def _among(table: sa.Table, keys: Sequence[CellKey]) -> sa.ColumnElement[bool]:
    """Rows of these cells, which are of one issue."""
    places = sa.tuple_(table.c.build, table.c.hardware)
    return sa.and_(table.c.issue == keys[0].issue, places.in_([(key.build, key.hardware) for key in keys]))


def _load_listed(s: Session, keys: Sequence[CellKey]) -> Mapping[CellKey, list[_Listed]]:
    listed: dict[CellKey, list[_Listed]] = {key: [] for key in keys}
    columns = [attempts.c[field.name] for field in fields(_Listed)]
    places = (attempts.c.issue, attempts.c.build, attempts.c.hardware)
    for issue, build, hardware, *rest in s.execute(sa.select(*places, *columns).where(_among(attempts, keys))):
        listed[CellKey(issue, build, hardware)].append(_Listed(*rest))
    return listed


def _load_counted(
    s: Session, keys: Sequence[CellKey], wanted: Mapping[CellKey, Mapping[tuple[str, str], str]]
) -> Mapping[CellKey, list[tuple[Attempt, str]]]:
    """The attempts that count, with their logs. Superseded evidence is not even read."""
    counted: dict[CellKey, list[tuple[Attempt, str]]] = {key: [] for key in keys}
    current = sorted({bound for bindings in wanted.values() for bound in bindings.values()})
    query = (
        sa.select(attempts, logs.c.zlib)
        .join(logs, logs.c.digest == attempts.c.log_digest, isouter=True)
        .where(_among(attempts, keys), attempts.c.binding.in_(current))
    )
    for row in s.execute(query).mappings():
        attempt = evidence.parse_attempt(row)
        key = CellKey(attempt.issue, attempt.build, attempt.hardware)
        if evidence.counts(attempt, wanted[key]):
            counted[key].append((attempt, evidence.unpack(row["zlib"])))
    return counted


def _load_docs(s: Session, keys: Sequence[CellKey]) -> dict[CellKey, str]:
    query = sa.select(cells.c.issue, cells.c.build, cells.c.hardware, cells.c.doc).where(_among(cells, keys))
    return {CellKey(issue, build, hardware): doc for issue, build, hardware, doc in s.execute(query)}


def _mark(s: Session, derived: Iterable[_Derived]) -> None:
    marks = [mark for one in derived for mark in one.marks]
    if marks:
        update = sa.update(attempts).where(attempts.c.id == sa.bindparam("key"))
        s.connection().execute(update.values(counts_as=sa.bindparam("outcome")), marks)


def _store(s: Session, derived: Mapping[CellKey, _Derived]) -> None:
    if not derived:
        return
    s.execute(sa.delete(cells).where(_among(cells, list(derived))))
    rows = [
        {**asdict(key), "verdict": one.cell.verdict, "measured_at": one.cell.measured_at, "doc": one.doc}
        for key, one in derived.items()
        if one.cell is not None
    ]
    if rows:
        s.connection().execute(sa.insert(cells), rows)


def _announce_changes(s: Session, changes: Iterable[CellChange], now: datetime) -> None:
    """More of the same evidence is no news; another verdict, of the cell or of a workaround, is."""
    news = [_news_row(change, now) for change in changes if change.is_news]
    if news:
        s.connection().execute(sa.insert(events), news)


def _news_row(change: CellChange, now: datetime) -> dict[str, Any]:
    before, after = change.verdicts
    place = {"issue": change.issue, "build": change.build, "hardware": change.hardware}
    return {"at": now, "run": "", "kind": "cell_changed", "data": {**place, "before": before, "after": after}}
