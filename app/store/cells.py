"""Cells as stored: derived whenever evidence or catalogue changes, so that reading them costs no history."""

from collections import Counter
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
from app.domain.triage import Note, NoteKind, standing_void, voided
from app.domain.verdict import Cell, Judged, derive_cell
from app.formats import wire
from app.store import evidence
from app.store.counters import attempt_counter, count
from app.store.rows import CellChange
from app.store.tables import attempts, builds, cells, events, issues, logs, meta, notes

_CELLS_AT_ONCE = 50

CHANGED, IMPORTED = "cell_changed", "imported"
"""The kinds of the events that tell a cell's change, and of those that tell where a bundle came from."""

VOIDED, UNVOIDED = "results_voided", "results_unvoided"
"""The kinds of the events that tell what became of all results of a worker."""


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
    s: Session, keys: Iterable[CellKey], now: datetime, catalogue: Catalogue | None = None, *, run: str = ""
) -> tuple[CellChange, ...]:
    """Derive cells anew from their evidence, store what differs, and tell it; unknown issues are passed over.

    `run` is the one whose result this is (empty: of none).
    """
    catalogue = catalogue or Catalogue(s)
    changes: list[CellChange] = []
    for _, of_issue in groupby(sorted(set(keys)), key=lambda key: key.issue):
        known = [key for key in of_issue if catalogue.find(key) is not None]
        for start in range(0, len(known), _CELLS_AT_ONCE):
            changes += _rederive_some(s, catalogue, known[start : start + _CELLS_AT_ONCE])
    _announce_changes(s, changes, now, run)
    return tuple(changes)


@dataclass(frozen=True)
class _Listed:
    """An attempt without its evidence."""

    id: str
    arm: str
    variant: str
    binding: str
    counts_as: str | None
    void: int | None


def _rederive_some(s: Session, catalogue: Catalogue, keys: Sequence[CellKey]) -> list[CellChange]:
    """Cells of one issue, few enough for their evidence to be held in memory together."""
    listed = _load_listed(s, keys)
    wanted = {key: catalogue.bindings(key) or {} for key in keys}
    counted = _load_counted(s, keys, wanted)
    before = _load_docs(s, keys)
    said = load_notes(s, keys)
    derived = {key: _derive(catalogue, key, listed[key], counted[key], said[key]) for key in keys}
    _mark(s, derived.values())
    count(s, Counter(name for one in derived.values() for name in one.counters))
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


def derive_until(s: Session, keys: Iterable[CellKey], until: datetime) -> tuple[Cell, ...]:
    """What the attempts finished at `until` or before say of these cells by today's catalogue and rules, less the cells
    that have none. Nothing is stored; the cost grows with the number of those attempts.
    """
    catalogue = Catalogue(s)
    found: list[Cell] = []
    for _, of_issue in groupby(sorted(set(keys)), key=lambda key: key.issue):
        known = [key for key in of_issue if catalogue.find(key) is not None]
        for start in range(0, len(known), _CELLS_AT_ONCE):
            some = known[start : start + _CELLS_AT_ONCE]
            listed = _load_listed(s, some, until)
            counted = _load_counted(s, some, {key: catalogue.bindings(key) or {} for key in some}, until)
            said = load_notes(s, some, until)
            derived = (_derive(catalogue, key, listed[key], counted[key], said[key]).cell for key in some)
            found += [cell for cell in derived if cell is not None]
    return tuple(found)


@dataclass(frozen=True)
class _Derived:
    """A cell with its text (none where there is no attempt), and the attempts whose mark is out of date. `counters`
    are those of the attempts that did not count before.
    """

    cell: Cell | None
    doc: str | None
    marks: tuple[dict[str, str | None], ...]
    counters: tuple[str, ...] = ()


def _derive(
    catalogue: Catalogue,
    key: CellKey,
    listed: Sequence[_Listed],
    counted: Sequence[tuple[Attempt, str]],
    said: Sequence[Note],
) -> _Derived:
    known = catalogue.find(key)
    if known is None or not listed:
        return _Derived(None, None, ())
    judged = evidence.judge_all(counted, *known)
    outcomes = {one.attempt: one.outcome.value for one in judged}
    not_counted = sum(one.void is not None for one in listed)
    superseded = len(listed) - len(counted) - not_counted
    cell = derive_cell(*known, key.hardware, judged, superseded=superseded, voided=not_counted)
    void = standing_void(said)
    cell = voided(cell, void) if void else cell
    return _Derived(
        cell=cell,
        doc=wire.CELL.dump_json(cell, exclude_defaults=True).decode(),
        marks=tuple(
            {"key": one.id, "outcome": outcomes.get(one.id)} for one in listed if outcomes.get(one.id) != one.counts_as
        ),
        counters=_new_counters(listed, counted, judged),
    )


def _new_counters(
    listed: Sequence[_Listed], counted: Sequence[tuple[Attempt, str]], judged: Sequence[Judged]
) -> tuple[str, ...]:
    new = {one.id for one in listed if one.counts_as is None}
    pairs = zip(counted, judged, strict=True)
    return tuple(attempt_counter(attempt, one.outcome) for (attempt, _), one in pairs if attempt.id in new)


def _among(table: sa.Table, keys: Sequence[CellKey]) -> sa.ColumnElement[bool]:
    """Rows of these cells, which are of one issue."""
    places = sa.tuple_(table.c.build, table.c.hardware)
    return sa.and_(table.c.issue == keys[0].issue, places.in_([(key.build, key.hardware) for key in keys]))


def _by(until: datetime | None) -> sa.ColumnElement[bool]:
    return sa.true() if until is None else attempts.c.finished_at <= until


def _load_listed(s: Session, keys: Sequence[CellKey], until: datetime | None = None) -> Mapping[CellKey, list[_Listed]]:
    listed: dict[CellKey, list[_Listed]] = {key: [] for key in keys}
    columns = [attempts.c[field.name] for field in fields(_Listed)]
    places = (attempts.c.issue, attempts.c.build, attempts.c.hardware)
    for issue, build, hardware, *rest in s.execute(
        sa.select(*places, *columns).where(_among(attempts, keys), _by(until))
    ):
        listed[CellKey(issue, build, hardware)].append(_Listed(*rest))
    return listed


def _load_counted(
    s: Session,
    keys: Sequence[CellKey],
    wanted: Mapping[CellKey, Mapping[tuple[str, str], str]],
    until: datetime | None = None,
) -> Mapping[CellKey, list[tuple[Attempt, str]]]:
    """The attempts that count, with their logs. Superseded and voided evidence is not even read."""
    counted: dict[CellKey, list[tuple[Attempt, str]]] = {key: [] for key in keys}
    current = sorted({bound for bindings in wanted.values() for bound in bindings.values()})
    query = (
        sa.select(*evidence.TOLD, logs.c.zlib)
        .join(logs, logs.c.digest == attempts.c.log_digest, isouter=True)
        .where(_among(attempts, keys), attempts.c.binding.in_(current), attempts.c.void.is_(None), _by(until))
    )
    for *told, zlib in s.execute(query):
        attempt = evidence.parse_told(told)
        key = CellKey(attempt.issue, attempt.build, attempt.hardware)
        if evidence.counts(attempt, wanted[key]):
            counted[key].append((attempt, evidence.unpack(zlib)))
    return counted


def load_notes(
    s: Session, keys: Sequence[CellKey], until: datetime | None = None
) -> Mapping[CellKey, tuple[Note, ...]]:
    """What people said of these cells of one issue (until then), the oldest first."""
    said: dict[CellKey, tuple[Note, ...]] = dict.fromkeys(keys, ())
    columns = [notes.c[field.name] for field in fields(Note)]
    by_then = sa.true() if until is None else notes.c.at <= until
    for row in s.execute(sa.select(*columns).where(_among(notes, keys), by_then).order_by(notes.c.id)).mappings():
        note = Note(**{**row, "kind": NoteKind(row["kind"])})
        key = CellKey(note.issue, note.build, note.hardware)
        said[key] = (*said[key], note)
    return said


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
    generation = s.execute(sa.select(meta.c.value).where(meta.c.name == "generation")).scalar_one()
    rows = [
        {
            **asdict(key),
            "verdict": one.cell.verdict,
            "measured_at": one.cell.measured_at,
            "changed": generation,
            "doc": one.doc,
        }
        for key, one in derived.items()
        if one.cell is not None
    ]
    if rows:
        s.connection().execute(sa.insert(cells), rows)


def _announce_changes(s: Session, changes: Iterable[CellChange], now: datetime, run: str) -> None:
    """More of the same evidence is no news; another verdict, of the cell or of a workaround, is."""
    told = {"at": now, "run": run, "kind": CHANGED}
    news = [{**told, "issue": change.issue, "data": _news(change)} for change in changes if change.is_news]
    if news:
        s.connection().execute(sa.insert(events), news)


def _news(change: CellChange) -> dict[str, Any]:
    before, after = change.verdicts
    return {
        "issue": change.issue,
        "build": change.build,
        "hardware": change.hardware,
        "before": before,
        "after": after,
        "reason": change.after.reason if change.after else "",
        "workarounds": dict(change.turned_workarounds),
    }
