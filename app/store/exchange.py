"""Bundles in and out of the store: all of a bundle or nothing, and a second time changes nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
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
from app.store.rows import ImportReport, Selection
from app.store.tables import attempts, environments, imports, issues, locks, logs, machines, metadata

_CLOCKS_DIFFER = timedelta(days=1)
_ROWS_AT_ONCE = 200


def export_bundle(
    s: Session,
    out: BinaryIO,
    *,
    now: datetime,
    origin: str,
    selection: Selection | None = None,
) -> Mapping[str, int]:
    """Write evidence as a bundle, all of it or a selection; tell how many items of each kind.

    `origin` names this store to whoever imports it. Addresses in locks are cut to file names.
    """
    header = bundle.Header(created_at=now, origin=origin, catalogue=_revisions(s))
    return bundle.write_bundle(out, header, _items(s, _where(selection or Selection())))


def _where(selection: Selection) -> sa.ColumnElement[bool]:
    chosen = [attempts.c.counts_as.is_not(None)] if selection.only_counted else []
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
    another state of a repro come in as superseded. Raises BadBundle, and nothing was imported.
    `by` is whom the audit log names. With `vouched` every attempt's origin is their name, whatever the bundle says of
    itself: a bundle that came over the network is known by its token alone.
    """
    checked = bundle.check_bundle(path)
    touch(s)
    catalogue = Catalogue(s)
    origin = by.name if by and vouched else checked.header.origin
    intake = _Intake(s, catalogue, origin, now, vouched=vouched)
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
        known=checked.counts.get("attempt", 0) - intake.added,
        unknown=intake.unknown,
        superseded=intake.superseded,
        changed=changed,
    )


class _Intake:
    """Items on their way into the tables, in batches, so that memory does not grow with the bundle."""

    def __init__(self, s: Session, catalogue: Catalogue, origin: str, now: datetime, *, vouched: bool) -> None:
        self._s = s
        self._vouched = vouched
        self._origin = origin
        self._now = now
        self._catalogue = catalogue
        self._rows: dict[str, list[Mapping[str, Any]]] = {}
        self._attempts: dict[str, Attempt] = {}
        self.keys: set[CellKey] = set()
        self.added = self.unknown = self.superseded = 0

    def take(self, item: bundle.Item) -> None:
        match item:
            case Machine():
                self._put(machines, {"digest": item.digest, "doc": wire.MACHINE.dump_json(item).decode()})
            case bundle.Lock() | bundle.Log():
                table = locks if isinstance(item, bundle.Lock) else logs
                self._put(table, {"digest": item.digest, "zlib": evidence.pack(item.text)})
            case bundle.Environment():
                self._put(environments, asdict(item))
            case Attempt():
                self._take_attempt(item)

    def _put(self, table: sa.Table, row: Mapping[str, Any]) -> None:
        rows = self._rows.setdefault(table.name, [])
        rows.append(row)
        if len(rows) >= _ROWS_AT_ONCE:
            self.store()

    def _take_attempt(self, attempt: Attempt) -> None:
        if attempt.finished_at > self._now + _CLOCKS_DIFFER:
            raise BadBundle(f"attempt {attempt.id} finished at {attempt.finished_at}, which is still to come")
        origin = self._origin if self._vouched or attempt.origin == LOCAL else attempt.origin
        self._attempts[attempt.id] = attempt
        self._put(attempts, evidence.attempt_row(replace(attempt, origin=origin)))

    def store(self) -> None:
        """Write what has gathered; of the attempts, count those that were new."""
        for name, rows in self._rows.items():
            new = insert_missing(self._s, metadata.tables[name], rows)
            if name == attempts.name:
                self._count([self._attempts[id_] for id_ in new])
        self._rows.clear()
        self._attempts.clear()

    def _count(self, new: Sequence[Attempt]) -> None:
        for attempt in new:
            key = CellKey(attempt.issue, attempt.build, attempt.hardware)
            bindings = self._catalogue.bindings(key)
            self.keys.add(key)
            self.added += 1
            self.unknown += bindings is None
            self.superseded += bindings is not None and not evidence.counts(attempt, bindings)
