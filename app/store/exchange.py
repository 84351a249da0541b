"""Bundles in and out of the store: all of a bundle or nothing, and a second time changes nothing."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

import sqlalchemy as sa
from sqlalchemy.orm import Session

from app.domain.access import Actor
from app.domain.errors import BadBundle
from app.domain.job import LOCAL, Attempt
from app.domain.machine import Machine
from app.formats import bundle, wire
from app.store import audit, evidence
from app.store.cells import IMPORTED, Catalogue, CellKey, announce, insert_missing, rederive, touch
from app.store.rows import ArmState, ImportReport, Selection
from app.store.tables import arms, attempts, environments, imports, issues, locks, logs, machines
from app.store.voiding import load_standing_voids, void_over

_CLOCKS_DIFFER = timedelta(days=1)
_ROWS_AT_ONCE = 200
_BATCH_BYTES = 8 << 20  # what is held before it is written; an item without a text is taken for as much as an attempt
_ITEM_BYTES = 4096


def export_bundle(
    s: Session,
    out: BinaryIO,
    *,
    now: datetime,
    origin: str,
    selection: Selection | None = None,
) -> Mapping[str, int]:
    """Write evidence as a bundle, all of it or a selection; tell how many items of each kind.

    What is voided stays here: a bundle has no word for it, and wherever it went it would count.
    `origin` names this store to whoever imports it. Addresses in locks are cut to file names.
    """
    header = bundle.Header(created_at=now, origin=origin, catalogue=_revisions(s))
    return bundle.write_bundle(out, header, _items(s, _where(selection or Selection())))


def _where(selection: Selection) -> sa.ColumnElement[bool]:
    chosen = [attempts.c.void.is_(None)]
    if selection.only_counted:
        chosen.append(attempts.c.counts_as.is_not(None))
    if selection.issues is not None:
        chosen.append(attempts.c.issue.in_(sorted(selection.issues)))
    if selection.builds is not None:
        chosen.append(attempts.c.build.in_(sorted(selection.builds)))
    if selection.hardware is not None:
        chosen.append(attempts.c.hardware.in_(sorted(selection.hardware)))
    return sa.and_(sa.true(), *chosen)


def _revisions(s: Session) -> dict[str, str]:
    query = sa.select(issues.c.id, issues.c.revision).where(issues.c.is_present).order_by(issues.c.id)
    return dict(s.execute(query).all())


def _items(s: Session, chosen: sa.ColumnElement[bool]) -> Iterator[bundle.Item]:
    for row in _referred(s, machines, machines.c.digest, attempts.c.machine, chosen):
        yield wire.MACHINE.validate_json(row["doc"])
    for row in _referred(s, locks, locks.c.digest, attempts.c.lock_digest, chosen):
        yield bundle.Lock(row["digest"], bundle.without_addresses(evidence.unpack(row["zlib"])))
    for row in _referred(s, environments, environments.c.lock_digest, attempts.c.lock_digest, chosen):
        yield bundle.Environment(row["lock_digest"], row["packages"], row["imported"])
    for row in _referred(s, logs, logs.c.digest, attempts.c.log_digest, chosen):
        yield bundle.Log(row["digest"], evidence.unpack(row["zlib"]))
    for row in _streamed(s, sa.select(attempts).where(chosen).order_by(attempts.c.id)):
        yield evidence.parse_attempt(row)


def _referred(
    s: Session, table: sa.Table, key: sa.Column[str], by: sa.Column[str], chosen: sa.ColumnElement[bool]
) -> Iterator[sa.RowMapping]:
    return _streamed(s, sa.select(table).where(key.in_(sa.select(by).where(chosen))).order_by(key))


def _streamed(s: Session, query: sa.Select[Any]) -> Iterator[sa.RowMapping]:
    yield from s.execute(query.execution_options(yield_per=_ROWS_AT_ONCE)).mappings()


def import_bundle(
    s: Session, path: Path, now: datetime, *, by: Actor | None = None, vouched: bool = False
) -> ImportReport:
    """Take in a bundle: attempts that are here already stay as they are, cells they concern are derived anew.

    Attempts of issues or builds that this catalogue does not know are kept and show once it does; those bound to
    another state of a repro come in as superseded, those that a void covers as voided. Raises BadBundle, and nothing
    was imported. A bundle that was taken in before is not even looked through.
    `by` is whom the audit log names. With `vouched` every attempt's origin is their name, whatever the bundle says of
    itself, and each keeps the token that it came through: a bundle that came over the network is known by that alone.
    """
    checked = bundle.check_bundle(path)
    origin = by.name if by and vouched else checked.header.origin
    n = checked.counts.get("attempt", 0)
    if _is_known(s, checked.sha256):
        return ImportReport(origin, added=0, known=n, unknown=0, superseded=0, voided=0, changed=())
    touch(s)
    catalogue = Catalogue(s)
    intake = _Intake(s, catalogue, _Sender(origin, by.token if by and vouched else "", vouched=vouched), now)
    for item in bundle.read_items(checked):
        intake.take(item)
    intake.store()
    row = {"digest": checked.sha256, "at": now, "origin": origin, "attempts": intake.added}
    insert_missing(s, imports, [row])
    changed = rederive(s, intake.keys, now, catalogue)
    if by and intake.added:
        audit.note(s, by, "results.import", checked.sha256, now, origin=origin, added=intake.added)
    announce(s, IMPORTED, now, origin=origin, added=intake.added, changed=len(changed))
    return ImportReport(
        origin=origin,
        added=intake.added,
        known=n - intake.added,
        unknown=intake.unknown,
        superseded=intake.superseded,
        voided=intake.voided,
        changed=changed,
    )


def _is_known(s: Session, digest: str) -> bool:
    return s.execute(sa.select(imports.c.digest).where(imports.c.digest == digest)).first() is not None


@dataclass(frozen=True)
class _Sender:
    """Who brings a bundle. `vouched` where they came over the network, through this token."""

    origin: str
    token: str
    vouched: bool


class _Intake:
    """Items on their way into the tables, in batches, so that memory does not grow with the bundle."""

    def __init__(self, s: Session, catalogue: Catalogue, sender: _Sender, now: datetime) -> None:
        self._s = s
        self._sender = sender
        self._now = now
        self._catalogue = catalogue
        self._voids = load_standing_voids(s)
        self._held: dict[type[bundle.Item], dict[str, bundle.Item]] = {}
        self._held_bytes = 0
        self.keys: set[CellKey] = set()
        self.added = self.unknown = self.superseded = self.voided = 0

    def take(self, item: bundle.Item) -> None:
        if isinstance(item, Attempt) and item.finished_at > self._now + _CLOCKS_DIFFER:
            raise BadBundle(f"attempt {item.id} finished at {item.finished_at}, which is still to come")
        self._held.setdefault(type(item), {}).setdefault(_key_of(item), item)
        self._held_bytes += _ITEM_BYTES + (len(item.text) if isinstance(item, bundle.Lock | bundle.Log) else 0)
        if self._held_bytes >= _BATCH_BYTES:
            self.store()

    def store(self) -> None:
        """Write what has gathered and is not here yet."""
        for kind, items in self._held.items():
            table = _TABLES[kind]
            key = next(iter(table.primary_key.columns))
            known = set(self._s.execute(sa.select(key).where(key.in_(items))).scalars())
            new = [item for id_, item in items.items() if id_ not in known]
            rows = [self._attempt_row(item) if isinstance(item, Attempt) else _row(item) for item in new]
            if kind is Attempt:
                self._refuse_planned(set(items) - known)
            if rows:
                # Whoever writes to these tables holds the generation's row: nobody else adds one of them meanwhile.
                self._s.connection().execute(sa.insert(table), rows)
        self._held.clear()
        self._held_bytes = 0

    def _attempt_row(self, attempt: Attempt) -> dict[str, Any]:
        """The row of a new attempt, which is counted."""
        sender = self._sender
        key = CellKey(attempt.issue, attempt.build, attempt.hardware)
        bindings = self._catalogue.bindings(key)
        void = void_over(attempt, sender.token, self._now, self._voids)
        self.keys.add(key)
        self.added += 1
        self.unknown += bindings is None
        self.voided += void is not None
        self.superseded += bindings is not None and not evidence.counts(attempt, bindings)
        row = evidence.attempt_row(attempt, evidence.Reception(self._now, sender.token, void))
        if sender.vouched or attempt.origin == LOCAL:
            row["origin"] = sender.origin
        return row

    def _refuse_planned(self, ids: Collection[str]) -> None:
        """What a dispatcher of ours is to measure has its number already, and everybody can read it in the events: a
        result that comes first under that number would be taken for the measured one.
        """
        if not self._sender.vouched:
            return
        planned = sa.select(arms.c.attempt).where(arms.c.attempt.in_(sorted(ids)), arms.c.state != ArmState.DONE)
        found = self._s.execute(planned.limit(1)).scalar()
        if found is not None:
            raise BadBundle(f"attempt {found} is planned here and its result is still to come from our own dispatcher")


_TABLES: dict[type[bundle.Item], sa.Table] = {
    Machine: machines,
    bundle.Lock: locks,
    bundle.Environment: environments,
    bundle.Log: logs,
    Attempt: attempts,
}


def _key_of(item: bundle.Item) -> str:
    match item:
        case Attempt():
            return item.id
        case bundle.Environment():
            return item.lock_digest
        case _:
            return item.digest


def _row(item: Machine | bundle.Lock | bundle.Log | bundle.Environment) -> dict[str, Any]:
    match item:
        case Machine():
            return {"digest": item.digest, "doc": wire.MACHINE.dump_json(item).decode()}
        case bundle.Environment():
            return asdict(item)
        case _:
            return {"digest": item.digest, "zlib": evidence.pack(item.text)}
