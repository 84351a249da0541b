"""Bundles in and out of the store: in whole, a large one step by step, and a second time changes nothing."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

import sqlalchemy as sa

from knowngood.domain.access import Actor
from knowngood.domain.errors import BadBundle, BadRequest
from knowngood.domain.measuring.job import LOCAL, Attempt
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.timed_search import Searched
from knowngood.domain.verdicts.voids import Void
from knowngood.serialization import codec
from knowngood.serialization.bounds import MOST_LINES, MOST_LOCKS
from knowngood.serialization.lock_keys import InstalledEnvironment, without_addresses
from knowngood.share.bundles import format as bundles_format
from knowngood.store import audit_log, bulk_insert, unreadable
from knowngood.store.counters import count
from knowngood.store.engine import Engine, Session, reading, unit_of_work
from knowngood.store.evidence import attempt_codec, collisions, machine_tallies
from knowngood.store.evidence.cells import (
    IMPORTED,
    StoredCatalogue,
    announce,
    insert_missing,
    load_keys_of_logs,
    rederive,
    touch,
)
from knowngood.store.evidence.incoming_attempts import IncomingAttempts, cell_of, look
from knowngood.store.evidence.notes import load_all_notes, take_in_notes
from knowngood.store.evidence.voids import load_standing_voids, load_voids, take_in_voids, void_over
from knowngood.store.records import ArmState, CellChange, Clash, ExportSelection, ImportReport
from knowngood.store.statements import among, number_of, pieces, place_of
from knowngood.store.tables import arms, attempts, environments, imports, issues, locks, logs, machines

_CLOCKS_DIFFER = timedelta(days=1)
_ROWS_AT_ONCE = 200
_BATCH_BYTES = 8 << 20  # what is held before it is written; an item without a text is taken for as much as an attempt
_ITEM_BYTES = 4096
_CLASHES_TOLD = 20
_STEP_BYTES = 1 << 20  # of a large bundle in one transaction: a tenth of a second of one core
_PAUSE_S = 0.15  # SQLite has no queue: who waits for the lock asks for it every tenth of a second
_IDS_AT_ONCE = 10_000
_LOG_BYTES = 16 << 20  # of packed logs; unpacked they are seven times as much


def export_bundle(
    s: Session,
    out: BinaryIO,
    *,
    now: datetime,
    origin: str,
    selection: ExportSelection | None = None,
) -> Mapping[str, int]:
    """Write evidence as a bundle, all of it or a selection; return how many items of each kind.

    Notes on the cells, and all voids, go with it; results that are voided stay here, because a reader of an earlier
    release would count them.
    `origin` names this store to whoever imports it. Addresses in locks are cut to file names. Raises BadRequest before
    anything is written where it would be more than an import takes.
    """
    chosen = _where(selection or ExportSelection())
    _refuse_too_much(s, chosen)
    header = bundles_format.BundleHeader(
        created_at=now,
        origin=origin,
        catalogue=_revisions(s),
        notes=load_all_notes(s, selection or ExportSelection()),
        voids=load_voids(s)[::-1],
    )
    return bundles_format.write_bundle(out, header, _items(s, chosen))


def _refuse_too_much(s: Session, chosen: sa.ColumnElement[bool]) -> None:
    of_locks = number_of(s, _referring(locks.c.digest, attempts.c.lock_digest, chosen))
    of_locks += number_of(s, _referring(environments.c.lock_digest, attempts.c.lock_digest, chosen))
    lines = of_locks + number_of(s, sa.select(attempts.c.id).where(chosen))
    lines += number_of(s, _referring(machines.c.digest, attempts.c.machine, chosen))
    lines += number_of(s, _referring(logs.c.digest, attempts.c.log_digest, chosen))
    if lines > MOST_LINES or of_locks > MOST_LOCKS:
        raise BadRequest(
            f"this would be a bundle of {lines:,} lines, {of_locks:,} of them of locks, and an import takes at most "
            f"{MOST_LINES:,} and {MOST_LOCKS:,}; name issues, builds or hardware classes, and export it in parts"
        )


def _referring(key: sa.Column[str], by: sa.Column[str], chosen: sa.ColumnElement[bool]) -> sa.Select[str]:
    """The keys of a table that chosen attempts refer to."""
    return sa.select(key).where(key.in_(sa.select(by).where(chosen)))


def _where(selection: ExportSelection) -> sa.ColumnElement[bool]:
    counted = [attempts.c.counts_as.is_not(None)] if selection.only_counted else []
    words = (selection.issues, selection.builds, selection.hardware)
    return sa.and_(attempts.c.void.is_(None), *counted, *among(*zip(place_of(attempts), words, strict=True)))


def _revisions(s: Session) -> dict[str, str]:
    query = sa.select(issues.c.id, issues.c.revision).where(issues.c.is_present).order_by(issues.c.id)
    return dict(s.execute(query).all())


def _items(s: Session, chosen: sa.ColumnElement[bool]) -> Iterator[bundles_format.Item]:
    machine_rows = _referred(s, machines, machines.c.digest, attempts.c.machine, chosen)
    described = ((row["digest"], row["doc"]) for row in machine_rows)
    yield from unreadable.readable("machines", described, codec.MACHINE.validate_json)
    for row in _referred(s, locks, locks.c.digest, attempts.c.lock_digest, chosen):
        yield bundles_format.LockText(row["digest"], without_addresses(attempt_codec.unpack(row["zlib"])))
    for row in _referred(s, environments, environments.c.lock_digest, attempts.c.lock_digest, chosen):
        yield InstalledEnvironment(row["lock_digest"], row["packages"], row["imported"])
    for row in _referred(s, logs, logs.c.digest, attempts.c.log_digest, chosen):
        yield bundles_format.LogText(row["digest"], attempt_codec.unpack(row["zlib"]))
    attempt_rows = _streamed(s, sa.select(attempts).where(chosen).order_by(attempts.c.id))
    yield from unreadable.readable("attempts", ((row["id"], row) for row in attempt_rows), attempt_codec.parse_attempt)


def _referred(
    s: Session, table: sa.Table, key: sa.Column[str], by: sa.Column[str], chosen: sa.ColumnElement[bool]
) -> Iterator[sa.RowMapping]:
    return _streamed(s, sa.select(table).where(key.in_(sa.select(by).where(chosen))).order_by(key))


def _streamed(s: Session, query: sa.Select[Any]) -> Iterator[sa.RowMapping]:
    yield from s.execute(query.execution_options(yield_per=_ROWS_AT_ONCE)).mappings()


def take_in_bundle(
    engine: Engine, path: Path, now: datetime, *, by: Actor, vouched: bool = False, alone: bool = False
) -> ImportReport:
    """Take in a bundle: attempts that are here already stay as they are, cells they concern are derived anew.

    Most bundles are one transaction, so that all of one is here or nothing. A large one is many, each short, between
    which others write unless it is `alone`: whatever is wrong with it is found before the first, a cell is taken in
    whole with all that its attempts refer to, and of an import that was broken off what was in stays, and the same
    bundle goes on from there.

    Attempts of issues or builds that this catalogue does not know are kept and show once it does; those bound to
    another state of a repro come in as superseded, those that a void covers as voided. What says something else than
    what stands here under its number takes its place or is refused, by the rule of `collisions`; a bundle of which
    something was refused may come again. One that was taken in whole is not even looked through, unless something here
    is voided and may have to give way. Raises BadBundle.
    `by` is whom the audit log names: it has an entry of every import, whatever came of it. With `vouched` every
    attempt's origin is their name, whatever the bundle says of itself, and each keeps the token that it came through: a
    bundle that came over the network is known by that alone.
    """
    try:
        coming = _Coming(bundles_format.check_bundle(path), by, now, vouched)
        with unit_of_work(engine) as s:
            if _is_known(s, coming.checked.sha256):
                return _known_already(s, coming)
        if coming.checked.lines is None:
            return _import_in_steps(engine, coming, pause_s=0 if alone else _PAUSE_S)
        return _import_whole(engine, coming)
    except BadBundle as refusal:
        with unit_of_work(engine) as s:
            audit_log.note(s, by, "results.refuse", str(refusal), now)
        raise


@dataclass(frozen=True)
class _Coming:
    """A bundle on its way in, who brings it and when. `vouched` where they came over the network, through `token`."""

    checked: bundles_format.CheckedBundle
    by: Actor
    now: datetime
    vouched: bool

    @property
    def origin(self) -> str:
        return self.by.name if self.vouched else self.checked.header.origin

    @property
    def token(self) -> str:
        return self.by.token if self.vouched else ""


def _import_whole(engine: Engine, coming: _Coming) -> ImportReport:
    step = _Step.of(engine, tuple(bundles_format.read_items(coming.checked)))
    with unit_of_work(engine) as s:
        return _end(s, coming, _take_in(s, coming, step))


@dataclass(frozen=True)
class _Step:
    """Items of one transaction, with what can be known of them before that begins: whoever writes meanwhile does
    not wait for it. `packed` are the logs as they are kept.
    """

    items: tuple[bundles_format.Item, ...]
    searched: Mapping[tuple[str, str], Searched]
    packed: Mapping[str, bytes]

    @classmethod
    def of(cls, engine: Engine, items: tuple[bundles_format.Item, ...]) -> "_Step":
        texts = {item.digest: item.text for item in items if isinstance(item, bundles_format.LogText)}
        with reading(engine) as s:
            searched = look(StoredCatalogue(s), [item for item in items if isinstance(item, Attempt)], texts)
        return cls(items, searched, {digest: attempt_codec.pack(text) for digest, text in texts.items()})


def _import_in_steps(engine: Engine, coming: _Coming, *, pause_s: float) -> ImportReport:
    ids: list[str] = []

    def look_at(item: bundles_format.Item) -> None:
        if isinstance(item, Attempt):
            _refuse_future(item, coming.now)
            ids.append(item.id)
        if len(ids) == _IDS_AT_ONCE:
            with reading(engine) as s:
                _refuse_planned(s, coming, ids)
            ids.clear()

    total = ImportReport(coming.origin, added=0, known=0, unknown=0, superseded=0, voided=0, changed=())
    for number, items in enumerate(bundles_format.read_in_steps(coming.checked, _STEP_BYTES, look_at)):
        step = _Step.of(engine, items)
        with unit_of_work(engine) as s:
            if number == 0:
                _refuse_planned(s, coming, ids)
                _note(s, coming, "results.begin", attempts=coming.checked.counts["attempt"])
            total = _sum(total, _take_in(s, coming, step))
        time.sleep(pause_s)
    with unit_of_work(engine) as s:
        return _end(s, coming, total)


def _take_in(s: Session, coming: _Coming, step: _Step) -> ImportReport:
    intake = _Intake(s, coming, step)
    for item in step.items:
        intake.take(item)
    changed = intake.end()
    if intake.came:
        announce(s, IMPORTED, coming.now, origin=coming.origin, added=intake.added, changed=len(changed))
    return ImportReport(
        origin=coming.origin,
        added=intake.added,
        known=intake.came - intake.added - len(intake.refused),
        unknown=intake.arrivals.unknown,
        superseded=intake.arrivals.superseded,
        voided=intake.arrivals.voided,
        changed=changed,
        replaced=intake.replaced,
        refused=tuple(intake.refused),
    )


def _sum(one: ImportReport, other: ImportReport) -> ImportReport:
    names = ("added", "known", "unknown", "superseded", "voided", "changed", "replaced", "refused")
    return replace(one, **{name: getattr(one, name) + getattr(other, name) for name in names})


def _end(s: Session, coming: _Coming, report: ImportReport) -> ImportReport:
    if not report.refused:
        row = {"digest": coming.checked.sha256, "at": coming.now, "origin": report.origin, "attempts": report.added}
        insert_missing(s, imports, [row])
    report = replace(report, said=0 if coming.vouched else _take_in_words(s, coming))
    told = {"added": report.added, "known": report.known, "replaced": report.replaced, "refused": len(report.refused)}
    clashes = [vars(one) for one in report.refused[:_CLASHES_TOLD]]
    _note(s, coming, "results.import", origin=report.origin, **told, **({"clashes": clashes} if clashes else {}))
    return report


def _take_in_words(s: Session, coming: _Coming) -> int:
    """Take in what people say of cells and of workers: from a file that an operator imports, never over the network."""
    header = coming.checked.header
    new = take_in_notes(s, header.notes, coming.now)
    return new + take_in_voids(s, header.voids, by=coming.by, now=coming.now)


def _known_already(s: Session, coming: _Coming) -> ImportReport:
    n, origin = coming.checked.counts.get("attempt", 0), coming.origin
    _note(s, coming, "results.import", origin=origin, added=0, known=n)
    return ImportReport(origin, added=0, known=n, unknown=0, superseded=0, voided=0, changed=())


def _note(s: Session, coming: _Coming, action: str, **told: object) -> None:
    audit_log.note(s, coming.by, action, coming.checked.sha256, coming.now, **told)


def _is_known(s: Session, digest: str) -> bool:
    """Whether all that this bundle says is here."""
    came = s.execute(sa.select(imports.c.digest).where(imports.c.digest == digest)).first() is not None
    return came and s.execute(sa.select(attempts.c.id).where(attempts.c.void.is_not(None)).limit(1)).first() is None


def _refuse_future(attempt: Attempt, now: datetime) -> None:
    if attempt.finished_at > now + _CLOCKS_DIFFER:
        raise BadBundle(f"attempt {attempt.id} finished at {attempt.finished_at}, which is still to come")


def _refuse_planned(s: Session, coming: _Coming, ids: Collection[str]) -> None:
    """An attempt that our own dispatcher is to make has its number already, and everybody can read it in the events: a
    result that comes first under that number would be taken for the measured one.
    """
    if not coming.vouched or not ids:
        return
    given = bulk_insert.given(s, ["id"], [(id_,) for id_ in sorted(ids)])
    planned = sa.select(arms.c.attempt).join_from(given, arms, arms.c.attempt == given.c.id)
    found = s.execute(planned.where(arms.c.state != ArmState.DONE).limit(1)).scalar()
    if found is not None:
        raise BadBundle(f"attempt {found} is planned here and its result is still to come from our own dispatcher")


class _Intake:
    """Items on their way into the tables. No more than a batch of them is held; what is held of all that it takes are
    the attempts that are refused, and of cells what is to be derived.
    """

    def __init__(self, s: Session, coming: _Coming, step: _Step) -> None:
        self._s = s
        self._coming = coming
        self._step = step
        self._catalogue = StoredCatalogue(s)
        self._catalogue.read_ahead({cell_of(item) for item in step.items if isinstance(item, Attempt)})
        self._voids: tuple[Void, ...] | None = None
        self._held: dict[type[bundles_format.Item], dict[str, bundles_format.Item]] = {}
        self._held_bytes = 0
        self._logs = _Logs(s)
        self.arrivals = IncomingAttempts(self._catalogue)
        self.came = self.added = self.replaced = 0
        self.refused: list[Clash] = []

    def take(self, item: bundles_format.Item) -> None:
        item = self._under_its_own_key(item)
        if isinstance(item, Attempt):
            _refuse_future(item, self._coming.now)
            self.came += 1
        self._held.setdefault(type(item), {}).setdefault(_key_of(item), item)
        self._held_bytes += _ITEM_BYTES + (len(item.text) if isinstance(item, bundles_format.DigestedText) else 0)
        if self._held_bytes >= _BATCH_BYTES:
            self._store()

    def _under_its_own_key(self, item: bundles_format.Item) -> bundles_format.Item:
        """A lock is kept under what its contents say, and so is what was found by it: not under what a bundle says."""
        match item:
            case Attempt() if item.lock_digest in self._coming.checked.locks:
                return replace(item, lock_digest=self._coming.checked.locks[item.lock_digest])
            case bundles_format.LockText():
                return replace(item, digest=self._coming.checked.locks[item.digest])
            case InstalledEnvironment():
                return replace(item, lock_digest=self._coming.checked.locks[item.lock_digest])
            case _:
                return item

    def end(self) -> tuple[CellChange, ...]:
        """Write the rest and derive the cells of all that was new; tell which came out differently."""
        self._store()
        count(self._s, self.arrivals.counters)
        return rederive(self._s, self.arrivals.keys, self._coming.now, self._catalogue, arrived=self.arrivals.arrived)

    def _store(self) -> None:
        """Write what has gathered and is not here yet, what is referred to before what refers to it."""
        if self._voids is None:  # not before: a bundle that is one batch is read to its end while nobody waits for it
            touch(self._s)
            self._voids = load_standing_voids(self._s)
        for kind, table in _TABLES.items():
            items = self._held.pop(kind, {})
            known = self._known(table, items)
            if kind is Attempt:
                _refuse_planned(self._s, self._coming, items.keys() - known)
                known -= self._settle([items[id_] for id_ in sorted(known)])
            # Whoever writes to these tables holds the generation's row: nobody else adds one of them meanwhile.
            rows = self._rows([item for id_, item in items.items() if id_ not in known])
            bulk_insert.insert(self._s, table, rows)
            if kind is Attempt:
                machine_tallies.add(self._s, map(_TALLIED, rows))
        self._held_bytes = 0

    def _settle(self, came: Sequence[bundles_format.Item]) -> set[str]:
        """Of attempts whose number is taken, those that take the place of what stands under it, which is gone."""
        some = [one for one in came if isinstance(one, Attempt)]
        voided = {
            one.id
            for one in some
            if void_over(one, self._coming.token, self._coming.now, self._voids or ()) is not None
        }
        settled = collisions.settle(self._s, some, token=self._coming.token, voided=voided)
        self.arrivals.keys |= settled.left
        self.refused += settled.refused
        self.replaced += len(settled.replaced)
        return {one.id for one in settled.replaced}

    def _known(self, table: sa.Table, ids: Collection[str]) -> set[str]:
        if not ids:
            return set()
        key = next(iter(table.primary_key.columns))
        given = bulk_insert.given(self._s, ["id"], [(id_,) for id_ in ids])
        return set(self._s.execute(sa.select(key).join_from(given, table, key == given.c.id)).scalars())

    def _rows(self, new: Sequence[bundles_format.Item]) -> list[bulk_insert.Row]:
        """The rows of new items of one kind."""
        came = [item for item in new if isinstance(item, Attempt)]
        if came:
            return [row for some in pieces(came, _ROWS_AT_ONCE) for row in self._attempt_rows(some)]
        rows = [self._row(item) for item in new if not isinstance(item, Attempt)]
        of_logs = [row for item, row in zip(new, rows, strict=True) if isinstance(item, bundles_format.LogText)]
        self._logs.keep(of_logs)
        self.arrivals.keys |= load_keys_of_logs(self._s, [digest for digest, _ in of_logs])
        return rows

    def _row(
        self, item: Machine | bundles_format.LockText | bundles_format.LogText | InstalledEnvironment
    ) -> bulk_insert.Row:
        match item:
            case Machine():
                return (item.digest, codec.MACHINE.dump_json(item).decode())
            case InstalledEnvironment():
                return (item.lock_digest, item.packages, item.imported)
            case bundles_format.LogText():
                return (item.digest, self._step.packed[item.digest])
            case bundles_format.LockText():
                return (item.digest, attempt_codec.pack(item.text))

    def _attempt_rows(self, came: Sequence[Attempt]) -> list[bulk_insert.Row]:
        """Of so few that their logs can be held together, unpacked."""
        texts = self._logs.find({one.log_digest for one in came if self.arrivals.wants_log(one)})
        return [self._attempt_row(attempt, texts) for attempt in came]

    def _attempt_row(self, attempt: Attempt, texts: Mapping[str, str]) -> bulk_insert.Row:
        """The row of a new attempt, which is judged."""
        coming = self._coming
        void = void_over(attempt, coming.token, self._coming.now, self._voids or ())
        row = attempt_codec.attempt_row(attempt, attempt_codec.Reception(coming.now, coming.token, void))
        if coming.vouched or attempt.origin == LOCAL:
            row["origin"] = coming.origin
        kept = self._step.searched.get((attempt.id, attempt.log_digest))
        row |= vars(self.arrivals.take(attempt, texts, is_voided=void is not None, kept=kept))
        self.added += 1
        return _COLUMNS(row)


class _Logs:
    """Logs that came, packed, until they are too many to be held; the others are read from the store."""

    def __init__(self, s: Session) -> None:
        self._s = s
        self._packed: dict[str, bytes] = {}
        self._bytes = 0

    def keep(self, rows: Iterable[bulk_insert.Row]) -> None:
        for digest, packed in rows:
            self._packed[digest] = packed
            self._bytes += len(packed)
        while self._bytes > _LOG_BYTES:
            self._bytes -= len(self._packed.pop(next(iter(self._packed))))

    def find(self, digests: Collection[str]) -> Mapping[str, str]:
        """Their texts by digest, as far as they are here by now."""
        held = {digest: attempt_codec.unpack(self._packed[digest]) for digest in digests if digest in self._packed}
        return held | attempt_codec.load_texts(self._s, logs, sorted(set(digests) - held.keys() - {""}))


_TABLES: dict[type[bundles_format.Item], sa.Table] = {
    Machine: machines,
    bundles_format.LockText: locks,
    InstalledEnvironment: environments,
    bundles_format.LogText: logs,
    Attempt: attempts,
}
_COLUMNS: Callable[[Mapping[str, Any]], bulk_insert.Row] = itemgetter(*attempts.columns.keys())
_TALLIED: Callable[[bulk_insert.Row], tuple[str, str, str, datetime]] = itemgetter(
    *map(attempts.columns.keys().index, ("machine", "hardware", "origin", "finished_at"))
)


def _key_of(item: bundles_format.Item) -> str:
    match item:
        case Attempt():
            return item.id
        case InstalledEnvironment():
            return item.lock_digest
        case _:
            return item.digest
