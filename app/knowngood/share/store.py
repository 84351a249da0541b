"""Bundles in and out of the store: in whole, a large one step by step, and a second time changes nothing."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
from knowngood.share import bundle as bundles_format
from knowngood.store import audit_log, counters, statements, unreadable
from knowngood.store.engine import Engine, Session, reading, unit_of_work
from knowngood.store.evidence import attempt_codec, incoming_attempts
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
from knowngood.store.records import ArmState, Clash, ExportSelection, ImportReport
from knowngood.store.statements import among, number_of, pieces, place_of
from knowngood.store.tables import arms, attempts, environments, imports, issues, locks, logs, machines

_CLOCKS_DIFFER = timedelta(days=1)
_ROWS_AT_ONCE = 200
_CLASHES_NOTED = 20
_STEP_BYTES = 1 << 20  # of a large bundle in one transaction: a tenth of a second of one core
_PAUSE_S = 0.15  # SQLite has no queue: who waits for the lock asks for it every tenth of a second
_IDS_AT_ONCE = 10_000


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
    revisions = sa.select(issues.c.id, issues.c.revision).where(issues.c.is_present)
    header = bundles_format.BundleHeader(
        created_at=now,
        origin=origin,
        catalogue=dict(s.execute(revisions.order_by(issues.c.id)).all()),
        notes=load_all_notes(s, selection or ExportSelection()),
        voids=load_voids(s)[::-1],
    )
    return bundles_format.write_bundle(out, header, _items(s, chosen))


def _refuse_too_much(s: Session, chosen: sa.ColumnElement[bool]) -> None:
    named_by = {
        locks.c.digest: attempts.c.lock_digest,
        environments.c.lock_digest: attempts.c.lock_digest,
        machines.c.digest: attempts.c.machine,
        logs.c.digest: attempts.c.log_digest,
    }
    counts = [number_of(s, sa.select(key).where(key.in_(sa.select(by).where(chosen)))) for key, by in named_by.items()]
    of_locks = counts[0] + counts[1]
    lines = sum(counts) + number_of(s, sa.select(attempts.c.id).where(chosen))
    if lines > MOST_LINES or of_locks > MOST_LOCKS:
        raise BadRequest(
            f"this would be a bundle of {lines:,} lines, {of_locks:,} of them of locks, and an import takes at most "
            f"{MOST_LINES:,} and {MOST_LOCKS:,}; name issues, builds or hardware classes, and export it in parts"
        )


def _where(selection: ExportSelection) -> sa.ColumnElement[bool]:
    counted = [attempts.c.counts_as.is_not(None)] if selection.only_counted else []
    words = (selection.issues, selection.builds, selection.hardware)
    return sa.and_(attempts.c.void.is_(None), *counted, *among(*zip(place_of(attempts), words, strict=True)))


def _items(s: Session, chosen: sa.ColumnElement[bool]) -> Iterator[bundles_format.Item]:
    machine_rows = _referred(s, machines.c.digest, attempts.c.machine, chosen, attempts.c.build)
    yield from unreadable.readable(
        "machines", ((row["digest"], row["doc"]) for row in machine_rows), codec.MACHINE.validate_json
    )
    for row in _referred(s, locks.c.digest, attempts.c.lock_digest, chosen, attempts.c.build):
        yield bundles_format.LockText(row["digest"], without_addresses(attempt_codec.unpack(row["zlib"])))
    for row in _referred(s, environments.c.lock_digest, attempts.c.lock_digest, chosen, attempts.c.build):
        yield InstalledEnvironment(row["lock_digest"], row["packages"], row["imported"])
    for row in _referred(s, logs.c.digest, attempts.c.log_digest, chosen, attempts.c.issue + attempts.c.build):
        yield bundles_format.LogText(row["digest"], attempt_codec.unpack(row["zlib"]))
    in_order = sa.select(attempts).where(chosen).order_by(*place_of(attempts), attempts.c.finished_at, attempts.c.id)
    yield from unreadable.readable(
        "attempts", ((row["id"], row) for row in _streamed(s, in_order)), attempt_codec.parse_attempt
    )


def _referred(
    s: Session, key: sa.Column[str], by: sa.Column[str], chosen: sa.ColumnElement[bool], like: sa.ColumnElement[str]
) -> Iterator[sa.RowMapping]:
    """The rows that chosen attempts refer to, like beside like: a bundle takes 0.6 of what it takes by keys."""
    first = sa.select(by.label("key"), sa.func.min(like).label("like")).where(chosen).group_by(by).subquery()
    return _streamed(s, sa.select(key.table).join(first, key == first.c.key).order_by(first.c.like, key))


def _streamed(s: Session, query: sa.Select[Any]) -> Iterator[sa.RowMapping]:
    yield from s.execute(query.execution_options(yield_per=_ROWS_AT_ONCE)).mappings()


def take_in_bundle(
    engine: Engine, path: Path, now: datetime, *, by: Actor, vouched: bool = False, alone: bool = False
) -> ImportReport:
    """Take in a bundle: attempts that are here already stay as they are, cells they concern are derived again.

    Most bundles are one transaction, so that all of one is here or nothing. A large one is many, each short, between
    which others write unless it is `alone`: whatever is wrong with it is found before the first, a cell is taken in
    whole with all that its attempts refer to, and of an import that was broken off what was in stays, and the same
    bundle goes on from there.

    Attempts of issues or builds that this catalogue does not know are kept and show once it does; those bound to
    another state of a repro come in as superseded, those that a void covers as voided. What says something else than
    what stands here under its number takes its place or is refused, by the rule of `settle`; a bundle of which some
    was refused may come again. One that was taken in whole is not even looked through, unless something here is voided
    and may have to give way. Raises BadBundle.
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
        return _end(s, coming, _Intake(s, coming, step).take())


@dataclass(frozen=True)
class _Step:
    """Items of one transaction, with what can be known of them before that begins: whoever writes meanwhile does
    not wait for it. `packed` are the logs as they are stored.
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
            total = _sum(total, _Intake(s, coming, step).take())
        time.sleep(pause_s)
    with unit_of_work(engine) as s:
        return _end(s, coming, total)


def _sum(report: ImportReport, other: ImportReport) -> ImportReport:
    names = ("added", "known", "unknown", "superseded", "voided", "changed", "replaced", "refused")
    return replace(report, **{name: getattr(report, name) + getattr(other, name) for name in names})


def _end(s: Session, coming: _Coming, report: ImportReport) -> ImportReport:
    if not report.refused:
        row = {"digest": coming.checked.sha256, "at": coming.now, "origin": report.origin, "attempts": report.added}
        insert_missing(s, imports, [row])
    report = replace(report, notes=0 if coming.vouched else _take_in_words(s, coming))
    counts = {"added": report.added, "known": report.known, "replaced": report.replaced, "refused": len(report.refused)}
    clashes = [vars(clash) for clash in report.refused[:_CLASHES_NOTED]]
    _note(s, coming, "results.import", origin=report.origin, **counts, **({"clashes": clashes} if clashes else {}))
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


def _note(s: Session, coming: _Coming, action: str, **details: object) -> None:
    audit_log.note(s, coming.by, action, coming.checked.sha256, coming.now, **details)


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
    given = statements.given(s, ["id"], [(id_,) for id_ in sorted(ids)])
    planned = sa.select(arms.c.attempt).join_from(given, arms, arms.c.attempt == given.c.id)
    attempt = s.execute(planned.where(arms.c.state != ArmState.DONE).limit(1)).scalar()
    if attempt is not None:
        raise BadBundle(f"attempt {attempt} is planned here and its result is still to come from our own dispatcher")


class _Intake:
    """Items of a step on their way into the tables."""

    def __init__(self, s: Session, coming: _Coming, step: _Step) -> None:
        self._s = s
        self._coming = coming
        self._step = step
        self._catalogue = StoredCatalogue(s)
        self._catalogue.read_ahead({cell_of(item) for item in step.items if isinstance(item, Attempt)})
        self._voids: tuple[Void, ...] = ()
        self._arrivals = IncomingAttempts(self._catalogue)
        self._added = self._replaced = 0
        self._refused: list[Clash] = []

    def take(self) -> ImportReport:
        """Write what is not here yet, what is referred to before what refers to it, and derive the cells of all that
        was new.
        """
        s, coming, arrivals = self._s, self._coming, self._arrivals
        came = 0
        kinds: dict[type[bundles_format.Item], dict[str, bundles_format.Item]] = {kind: {} for kind in _TABLES}
        for item in map(self._under_its_own_key, self._step.items):
            if isinstance(item, Attempt):
                _refuse_future(item, coming.now)
                came += 1
            kinds[type(item)].setdefault(_key_of(item), item)
        touch(s)  # from here on nobody else writes
        self._voids = load_standing_voids(s)
        for kind, items in kinds.items():
            known = self._known(_TABLES[kind], items)
            if kind is Attempt:
                _refuse_planned(s, coming, items.keys() - known)
                known -= self._settle([items[id_] for id_ in sorted(known)])
            rows = self._rows([item for id_, item in items.items() if id_ not in known])
            statements.insert(s, _TABLES[kind], rows)
            if kind is Attempt:
                counters.add_tallies(s, map(_TALLIED, rows))
        counters.count(s, arrivals.counters)
        changed = rederive(s, arrivals.keys, coming.now, self._catalogue, arrived=arrivals.arrived)
        if came:
            announce(s, IMPORTED, coming.now, origin=coming.origin, added=self._added, changed=len(changed))
        return ImportReport(
            origin=coming.origin,
            added=self._added,
            known=came - self._added - len(self._refused),
            unknown=arrivals.unknown,
            superseded=arrivals.superseded,
            voided=arrivals.voided,
            changed=changed,
            replaced=self._replaced,
            refused=tuple(self._refused),
        )

    def _under_its_own_key(self, item: bundles_format.Item) -> bundles_format.Item:
        """Give a lock, and what was installed by it, the key of its contents instead of the one that a bundle names."""
        match item:
            case Attempt() if item.lock_digest in self._coming.checked.locks:
                return replace(item, lock_digest=self._coming.checked.locks[item.lock_digest])
            case bundles_format.LockText():
                return replace(item, digest=self._coming.checked.locks[item.digest])
            case InstalledEnvironment():
                return replace(item, lock_digest=self._coming.checked.locks[item.lock_digest])
            case _:
                return item

    def _settle(self, came: Sequence[bundles_format.Item]) -> set[str]:
        """Settle attempts whose number is taken: return the ids of those that replace what stood under it."""
        some = [item for item in came if isinstance(item, Attempt)]
        voided = {
            attempt.id
            for attempt in some
            if void_over(attempt, self._coming.token, self._coming.now, self._voids) is not None
        }
        settled = incoming_attempts.settle(self._s, some, token=self._coming.token, voided=voided)
        self._arrivals.keys |= settled.left
        self._refused += settled.refused
        self._replaced += len(settled.replaced)
        return {clash.id for clash in settled.replaced}

    def _known(self, table: sa.Table, ids: Collection[str]) -> set[str]:
        if not ids:
            return set()
        key = next(iter(table.primary_key.columns))
        given = statements.given(self._s, ["id"], [(id_,) for id_ in ids])
        return set(self._s.execute(sa.select(key).join_from(given, table, key == given.c.id)).scalars())

    def _rows(self, new: Sequence[bundles_format.Item]) -> list[statements.Row]:
        """The rows of new items of one kind."""
        came = [item for item in new if isinstance(item, Attempt)]
        if came:
            return [row for some in pieces(came, _ROWS_AT_ONCE) for row in self._attempt_rows(some)]
        digests = [item.digest for item in new if isinstance(item, bundles_format.LogText)]
        self._arrivals.keys |= load_keys_of_logs(self._s, digests)
        return [self._row(item) for item in new if not isinstance(item, Attempt)]

    def _row(
        self, item: Machine | bundles_format.LockText | bundles_format.LogText | InstalledEnvironment
    ) -> statements.Row:
        match item:
            case Machine():
                return (item.digest, codec.MACHINE.dump_json(item).decode())
            case InstalledEnvironment():
                return (item.lock_digest, item.packages, item.imported)
            case bundles_format.LogText():
                return (item.digest, self._step.packed[item.digest])
            case bundles_format.LockText():
                return (item.digest, attempt_codec.pack(item.text))

    def _attempt_rows(self, came: Sequence[Attempt]) -> list[statements.Row]:
        """The rows of new attempts, so few that their logs can be held together, unpacked."""
        texts = self._texts({attempt.log_digest for attempt in came if self._arrivals.wants_log(attempt)})
        return [self._attempt_row(attempt, texts) for attempt in came]

    def _texts(self, digests: Collection[str]) -> Mapping[str, str]:
        """The logs of these digests, as far as they are here by now."""
        packed = self._step.packed
        came = {digest: attempt_codec.unpack(packed[digest]) for digest in digests if digest in packed}
        return came | attempt_codec.load_texts(self._s, logs, sorted(set(digests) - came.keys() - {""}))

    def _attempt_row(self, attempt: Attempt, texts: Mapping[str, str]) -> statements.Row:
        """The row of a new attempt, which is judged."""
        coming = self._coming
        void = void_over(attempt, coming.token, self._coming.now, self._voids)
        row = attempt_codec.attempt_row(attempt, coming.now, coming.token, void)
        if coming.vouched or attempt.origin == LOCAL:
            row["origin"] = coming.origin
        searched = self._step.searched.get((attempt.id, attempt.log_digest))
        row |= vars(self._arrivals.take(attempt, texts, is_voided=void is not None, searched=searched))
        self._added += 1
        return _COLUMNS(row)


_TABLES: dict[type[bundles_format.Item], sa.Table] = {
    Machine: machines,
    bundles_format.LockText: locks,
    InstalledEnvironment: environments,
    bundles_format.LogText: logs,
    Attempt: attempts,
}
_COLUMNS: Callable[[Mapping[str, Any]], statements.Row] = itemgetter(*attempts.columns.keys())
_TALLIED: Callable[[statements.Row], tuple[str, str, str, datetime]] = itemgetter(
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
