"""Cells as stored: derived whenever evidence or catalogue changes, so that reading them costs no history."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from knowngood.domain.builds.build import Build
from knowngood.domain.hardware_classes import isa_classes, whole_class
from knowngood.domain.issue import Issue
from knowngood.domain.message import english
from knowngood.domain.verdicts.verdict import Cell, CellKey, Judged, derive_cell, judge, over_isas
from knowngood.domain.verdicts.voids import Note, NoteKind, standing_void, voided
from knowngood.serialization import codec
from knowngood.store import statements, unreadable
from knowngood.store.counters import attempt_counter, count
from knowngood.store.engine import Session
from knowngood.store.evidence import attempt_codec, documents
from knowngood.store.records import CellChange
from knowngood.store.statements import insert_or, pieces, place_of
from knowngood.store.tables import attempts, builds, cells, events, issues, meta, notes

_READ_AT_ONCE = 50  # cells: few enough for their evidence to be held in memory together
_WRITTEN_AT_ONCE = 500

_PLACE = ("issue", "build", "hardware")

CHANGED, IMPORTED = "cell_changed", "imported"
"""The kinds of the events that tell a cell's change, and of those that tell where a bundle came from."""

CHECKED = "build_checked"
"""The kind of the events that tell that a build can no longer, or again, be installed."""

VOIDED, UNVOIDED = "results_voided", "results_unvoided"
"""The kinds of the events that tell what became of all results of a worker."""


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
    key = next(iter(table.primary_key.columns))
    statement = insert_or(s, table).on_conflict_do_nothing().returning(key)
    return list(s.execute(statement, rows).scalars())


@dataclass(frozen=True)
class IssueOnBuild:
    """An issue of the catalogue on one of its builds. `bindings` say by (arm, variant) what counts there."""

    issue: Issue
    build: Build
    bindings: Mapping[tuple[str, str], str]


@lru_cache(maxsize=8192)  # of 93 issues on 88 builds; whoever takes in a large bundle asks for each again and again
def _issue_on_build(docs: tuple[str, str]) -> IssueOnBuild:
    issue, build = documents.parse_issue(docs[0]), documents.parse_build(docs[1])
    return IssueOnBuild(issue, build, attempt_codec.current_bindings(issue, build))


class StoredCatalogue:
    """The present catalogue by key; each document is read at most once."""

    def __init__(self, s: Session) -> None:
        self._s = s
        self._docs: dict[tuple[str, str], str | None] = {}
        self._places: dict[tuple[str, str], IssueOnBuild | None] = {}

    def read_ahead(self, keys: Collection[CellKey]) -> None:
        """Ask for all documents that these cells need in two queries."""
        for table, ids in ((issues, {key.issue for key in keys}), (builds, {key.build for key in keys})):
            given = statements.given(self._s, ["id"], [(id_,) for id_ in sorted(ids)])
            query = sa.select(table.c.id, table.c.doc).join_from(given, table, table.c.id == given.c.id)
            texts = dict(self._s.execute(query.where(table.c.is_present)).all())
            self._docs |= {(table.name, id_): texts.get(id_) for id_ in ids}

    def find(self, key: CellKey) -> IssueOnBuild | None:
        """Find an issue on a build; None where the catalogue lacks one, or cannot read it until it is loaded anew."""
        named = (key.issue, key.build)
        if named not in self._places:
            self._places[named] = self._read(key)
        return self._places[named]

    def _read(self, key: CellKey) -> IssueOnBuild | None:
        issue_doc, build_doc = self._doc(issues, key.issue), self._doc(builds, key.build)
        if not issue_doc or not build_doc:
            return None
        docs = [(f"{key.issue} or {key.build}", (issue_doc, build_doc))]
        return next(unreadable.readable("issues and builds", docs, _issue_on_build), None)

    def _doc(self, table: sa.Table, id_: str) -> str | None:
        named = (table.name, id_)
        if named not in self._docs:
            query = sa.select(table.c.doc).where(table.c.id == id_, table.c.is_present)
            self._docs[named] = self._s.execute(query).scalar_one_or_none()
        return self._docs[named]


@dataclass
class IncomingForCell:
    """Attempts that came into one cell in this transaction and were judged as they came, so that it need not be read
    back: the `ids` of all of it, `judged` what counts, and how much of it does not.
    """

    ids: set[str] = field(default_factory=set)
    judged: list[Judged] = field(default_factory=list)
    superseded: int = 0
    voided: int = 0


_NOTHING_ARRIVED = IncomingForCell()


def rederive(
    s: Session,
    keys: Iterable[CellKey],
    now: datetime,
    catalogue: StoredCatalogue | None = None,
    *,
    run: str = "",
    arrived: Mapping[CellKey, IncomingForCell] | None = None,
) -> tuple[CellChange, ...]:
    """Derive cells anew from their evidence, store what differs, and tell it; unknown issues are passed over.

    `run` is the one whose result this is (empty: of none). Of what `arrived` nothing is read: it is stored and judged,
    and whoever stored it has marked and counted it.
    """
    catalogue = catalogue or StoredCatalogue(s)
    changes: list[CellChange] = []
    for known in _in_turn(catalogue, keys):
        for some in pieces(known, _WRITTEN_AT_ONCE):
            changes += _rederive_some(s, catalogue, some, arrived or {})
    _announce_changes(s, changes, now, run)
    return tuple(changes)


def _in_turn(catalogue: StoredCatalogue, keys: Iterable[CellKey]) -> tuple[list[CellKey], list[CellKey]]:
    """The cells of known issues and builds, and after them those that rest on cells of vector ISAs beside attempts of
    their own: whatever changes one of these changes them too.
    """
    wanted = set(keys)
    wanted |= {key._replace(hardware=whole_class(key.hardware)) for key in wanted}
    known = [key for key in sorted(wanted) if catalogue.find(key) is not None]
    resting = [key for key in known if _isa_keys(catalogue, key)]
    return [key for key in known if key not in set(resting)], resting


def _load_of_isas(s: Session, keys: Mapping[CellKey, Sequence[CellKey]]) -> Mapping[CellKey, Sequence[Cell]]:
    wanted = [isa_key for of in keys.values() for isa_key in of]
    docs = _load_docs(s, wanted) if wanted else {}
    return {
        key: [documents.read_cell(isa_key, docs[isa_key]) for isa_key in of if isa_key in docs]
        for key, of in keys.items()
    }


def _isa_keys(catalogue: StoredCatalogue, key: CellKey) -> list[CellKey]:
    place = catalogue.find(key)
    depends = place is not None and place.issue.requires.vector_isas
    return [key._replace(hardware=class_) for class_ in isa_classes(key.hardware)] if depends else []


def _rederive_some(
    s: Session, catalogue: StoredCatalogue, keys: Sequence[CellKey], arrived: Mapping[CellKey, IncomingForCell]
) -> list[CellChange]:
    before = _load_docs(s, keys)
    derived = dict(_derive_each(s, catalogue, keys, arrived))
    _mark(s, derived.values())
    count(s, Counter(name for result in derived.values() for name in result.counters))
    others = [key for key in keys if before.get(key) != derived[key].doc]
    _delete(s, [key for key in others if key in before])
    _insert(s, {key: derived[key] for key in others})
    were = {key: documents.read_cell(key, before[key]) for key in others if key in before}
    return [CellChange(*key, were.get(key), derived[key].cell) for key in others]


def _derive_each(
    s: Session, catalogue: StoredCatalogue, keys: Sequence[CellKey], arrived: Mapping[CellKey, IncomingForCell]
) -> Iterator[tuple[CellKey, "_Derived"]]:
    cell_notes = load_notes(s, keys)
    of_isas = _load_of_isas(s, {key: _isa_keys(catalogue, key) for key in keys})
    numbers = _load_numbers(s, [key for key in keys if key in arrived])
    whole = {key for key, number in numbers.items() if number == len(arrived[key].ids)}
    for key in whole:
        yield key, _derive(catalogue, key, _Held(), cell_notes[key], arrived[key], of_isas[key])
    for some in pieces([key for key in keys if key not in whole], _READ_AT_ONCE):
        held = _load_held(s, catalogue, some, arrived=arrived)
        for key in some:
            yield (
                key,
                _derive(catalogue, key, held[key], cell_notes[key], arrived.get(key, _NOTHING_ARRIVED), of_isas[key]),
            )


def derive_until(s: Session, keys: Iterable[CellKey], until: datetime) -> tuple[Cell, ...]:
    """These cells as of the attempts finished at `until` or before, by today's catalogue and rules, less the cells
    that have none. Nothing is stored; the cost grows with the number of those attempts.
    """
    catalogue = StoredCatalogue(s)
    keys = set(keys)
    first, resting = _in_turn(catalogue, {*keys, *(isa_key for key in keys for isa_key in _isa_keys(catalogue, key))})
    derived_cells: dict[CellKey, Cell] = {}
    for known in (first, resting):
        for some in pieces(known, _READ_AT_ONCE):
            held = _load_held(s, catalogue, some, until=until)
            cell_notes = load_notes(s, some, until)
            for key in some:
                of_isas = [derived_cells[isa_key] for isa_key in _isa_keys(catalogue, key) if isa_key in derived_cells]
                derived = _derive(catalogue, key, held[key], cell_notes[key], _NOTHING_ARRIVED, of_isas).cell
                derived_cells |= {key: derived} if derived is not None else {}
    return tuple(derived_cells.values())


_LISTED = ("id", "arm", "variant", "binding", "counts_as", "void")  # an attempt without its evidence


@dataclass(frozen=True)
class _Held:
    """The attempts of a cell in the store beside those that arrived: all of them, as rows that begin with the place and
    go on with `_LISTED`, and what counts with its logs.
    """

    listed: Sequence[Any] = ()
    counted: Sequence[attempt_codec.StoredAttempt] = ()


@dataclass(frozen=True)
class _Derived:
    """A cell with its text (none where there is no attempt), the attempts whose mark is out of date, and those in which
    somebody had to look for the signature. `counters` are those of the attempts that did not count before.
    """

    cell: Cell | None
    doc: str | None
    marks: tuple[dict[str, str | None], ...]
    searched: tuple[dict[str, str | None], ...] = ()
    counters: tuple[str, ...] = ()


def _derive(
    catalogue: StoredCatalogue,
    key: CellKey,
    held: _Held,
    cell_notes: Sequence[Note],
    arrived: IncomingForCell,
    of_isas: Sequence[Cell],
) -> _Derived:
    place = catalogue.find(key)
    is_measured = bool(held.listed or arrived.ids)
    if place is None or not (is_measured or of_isas):
        return _Derived(None, None, ())
    judged = [
        judge(evidence.attempt, place.issue, place.build, evidence.log, evidence.searched) for evidence in held.counted
    ]
    outcomes = {judgement.attempt: judgement.outcome.value for judgement in judged}
    not_counted = sum(entry.void is not None for entry in held.listed)
    own = derive_cell(
        place.issue,
        place.build,
        key.hardware,
        [*judged, *arrived.judged],
        superseded=len(held.listed) - len(judged) - not_counted + arrived.superseded,
        voided=not_counted + arrived.voided,
    )
    cell = over_isas(place.issue, own if is_measured else None, of_isas) or own
    void = standing_void(cell_notes)
    cell = voided(cell, void) if void else cell
    return _Derived(
        cell=cell,
        doc=codec.CELL.dump_json(cell, exclude_defaults=True).decode(),
        marks=tuple(
            {"key": entry.id, "outcome": outcomes.get(entry.id)}
            for entry in held.listed
            if outcomes.get(entry.id) != entry.counts_as
        ),
        searched=tuple(_new_searches(place.issue, held, judged)),
        counters=_new_counters(held, judged),
    )


def _new_counters(held: _Held, judged: Sequence[Judged]) -> tuple[str, ...]:
    new = {entry.id for entry in held.listed if entry.counts_as is None}
    pairs = zip(held.counted, judged, strict=True)
    return tuple(
        attempt_counter(evidence.attempt, judgement.outcome)
        for evidence, judgement in pairs
        if evidence.attempt.id in new
    )


def _new_searches(issue: Issue, held: _Held, judged: Sequence[Judged]) -> Iterator[dict[str, str | None]]:
    for evidence, judgement in zip(held.counted, judged, strict=True):
        text = attempt_codec.searched_whole(evidence.attempt, issue, evidence.log, judgement)
        if judgement.searched is not evidence.searched and text:
            yield {"key": evidence.attempt.id, "found": text}


def _given(s: Session, keys: Sequence[CellKey]) -> sa.FromClause:
    return statements.given(s, _PLACE, keys)


def _is_given(table: sa.Table, given: sa.FromClause) -> sa.ColumnElement[bool]:
    return sa.and_(*(table.c[name] == given.c[name] for name in _PLACE))


def _load_numbers(s: Session, keys: Sequence[CellKey]) -> Mapping[CellKey, int]:
    """The number of attempts of each of these cells, by an index: no row is read."""
    if not keys:
        return {}
    given = _given(s, keys)
    query = sa.select(*place_of(attempts), sa.func.count()).join_from(given, attempts, _is_given(attempts, given))
    return {CellKey(*place): n for *place, n in s.execute(query.group_by(*place_of(attempts)))}


def _load_held(
    s: Session,
    catalogue: StoredCatalogue,
    keys: Sequence[CellKey],
    *,
    arrived: Mapping[CellKey, IncomingForCell] | None = None,
    until: datetime | None = None,
) -> Mapping[CellKey, _Held]:
    """The stored attempts of these cells beside those that arrived. Superseded and voided evidence is not even read."""
    listed = _load_listed(s, keys, arrived or {}, until)
    counting: dict[CellKey, list[str]] = {}
    for key in keys:
        place = catalogue.find(key)
        bindings = place.bindings if place else {}
        counting[key] = [
            entry.id for entry in listed[key] if entry.void is None and attempt_codec.counts(entry, bindings)
        ]
    places = [place for place in map(catalogue.find, keys) if place]
    issues = {place.issue.id: place.issue for place in places}
    by_id = attempt_codec.load_stored(s, [id_ for ids in counting.values() for id_ in ids], issues)
    return {key: _Held(listed[key], [by_id[id_] for id_ in counting[key] if id_ in by_id]) for key in keys}


def _load_listed(
    s: Session, keys: Sequence[CellKey], arrived: Mapping[CellKey, IncomingForCell], until: datetime | None
) -> Mapping[CellKey, list[Any]]:
    listed: dict[CellKey, list[Any]] = {key: [] for key in keys}
    columns = [attempts.c[name] for name in _LISTED]
    given = _given(s, keys)
    query = sa.select(*place_of(attempts), *columns).join_from(given, attempts, _is_given(attempts, given))
    if until is not None:
        query = query.where(attempts.c.finished_at <= until)
    for row in s.execute(query):
        key = CellKey(*row[:3])
        if key not in arrived or row.id not in arrived[key].ids:
            listed[key].append(row)
    return listed


def load_keys_of_logs(s: Session, digests: Sequence[str]) -> set[CellKey]:
    """The cells of attempts that have these logs: what was judged without one says more once it has come."""
    if not digests:
        return set()
    given = statements.given(s, ["digest"], [(digest,) for digest in digests])
    query = sa.select(*place_of(attempts)).join_from(given, attempts, attempts.c.log_digest == given.c.digest)
    return set(map(CellKey._make, s.execute(query.distinct())))


def load_notes(
    s: Session, keys: Sequence[CellKey], until: datetime | None = None
) -> Mapping[CellKey, tuple[Note, ...]]:
    """The notes on these cells (until then), the oldest first."""
    by_cell: dict[CellKey, tuple[Note, ...]] = dict.fromkeys(keys, ())
    columns = [notes.c[field.name] for field in fields(Note)]
    given = _given(s, keys)
    query = sa.select(*columns).join_from(given, notes, _is_given(notes, given)).order_by(notes.c.id)
    if until is not None:
        query = query.where(notes.c.at <= until)
    for row in s.execute(query).mappings():
        note = Note(**{**row, "kind": NoteKind(row["kind"])})
        by_cell[note.key] = (*by_cell[note.key], note)
    return by_cell


def _load_docs(s: Session, keys: Sequence[CellKey]) -> dict[CellKey, str]:
    given = _given(s, keys)
    query = sa.select(*place_of(cells), cells.c.doc).join_from(given, cells, _is_given(cells, given))
    return {CellKey(*place): doc for *place, doc in s.execute(query)}


def _mark(s: Session, derived: Collection[_Derived]) -> None:
    update = sa.update(attempts).where(attempts.c.id == sa.bindparam("key"))
    if marks := [mark for result in derived for mark in result.marks]:
        s.execute(update.values(counts_as=sa.bindparam("outcome")), marks)
    if searched := [each for result in derived for each in result.searched]:
        s.execute(update.values(searched=sa.bindparam("found")), searched)


def _delete(s: Session, keys: Sequence[CellKey]) -> None:
    if keys:
        s.execute(sa.delete(cells).where(sa.tuple_(*place_of(cells)).in_(sa.select(_given(s, keys)))))


def _insert(s: Session, derived: Mapping[CellKey, _Derived]) -> None:
    generation = sa.select(meta.c.value).where(meta.c.name == "generation")
    changed = s.execute(generation).scalar_one() if derived else 0
    rows = [
        (*key, result.cell.verdict.value, result.cell.measured_at, changed, result.doc)
        for key, result in derived.items()
        if result.cell is not None
    ]
    statements.insert(s, cells, rows)


def _announce_changes(s: Session, changes: Iterable[CellChange], now: datetime, run: str) -> None:
    """More of the same evidence is no news; another verdict, of the cell or of a workaround, is."""
    news = [(now, run, CHANGED, change.issue, _news(change)) for change in changes if change.is_news]
    statements.insert(s, events, news, ("at", "run", "kind", "issue", "data"))


def _news(change: CellChange) -> dict[str, Any]:
    before, after = change.verdicts
    reason = change.after.reason if change.after else None
    return {
        "issue": change.issue,
        "build": change.build,
        "hardware": change.hardware,
        "before": before,
        "after": after,
        "reason": english(reason),
        "message": codec.MESSAGE.dump_python(reason, mode="json") if reason else None,
        "workarounds": dict(change.turned_workarounds),
    }
