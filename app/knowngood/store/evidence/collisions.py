"""Attempts that come in under a number that is taken: the same once more, or something else.

A number is known to whoever has read a bundle, and says nothing of who made what stands under it. So contents are
compared. What is voided gives way to whatever is not; what came through a token gives way to what whoever has the
database brought; what came from anywhere gives way to what our own dispatcher measured, which planned that number and
has no second copy of it. Everything else stays, and what says otherwise is refused and told.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from knowngood.domain.measuring.job import LOCAL, Attempt
from knowngood.domain.verdicts.verdict import CellKey
from knowngood.serialization import codec
from knowngood.serialization.lock_keys import InstalledEnvironment, lock_key
from knowngood.store import bulk_insert
from knowngood.store.engine import Session
from knowngood.store.evidence import attempt_codec, machine_tallies
from knowngood.store.records import Clash
from knowngood.store.statements import pieces
from knowngood.store.tables import attempts, environments, locks

_UNSAID = {"id", "origin", "labels", "received_at", "token", "void", "counts_as", "searched"}
_SAID = tuple(column for column in attempts.columns if column.name not in _UNSAID)
_AT_ONCE = 500


@dataclass
class Settled:
    """The outcome for attempts whose number was taken."""

    replaced: list[Clash] = field(default_factory=list)
    left: set[CellKey] = field(default_factory=set)
    refused: list[Clash] = field(default_factory=list)


def settle(
    s: Session, came: Sequence[Attempt], *, token: str, voided: Collection[str], is_ours: bool = False
) -> Settled:
    """Remove what has to give way to these attempts, which came through `token` (empty: through none) or were measured
    by our own dispatcher (`is_ours`); `voided` are those that a void covers. What is removed counted in the cells
    `left`.
    """
    outcome, keys = Settled(), _LockKeys(s)
    gone: list[sa.RowMapping] = []
    for some in pieces(came, _AT_ONCE):
        standing = _load_standing(s, [one.id for one in some])
        for attempt in some:
            row = standing.get(attempt.id)
            if row is None or _is_known(attempt, row, keys, voided):
                continue
            clash = Clash(attempt.id, row["origin"], row["token"])
            if row["void"] is not None or (row["token"] and not token) or (is_ours and row["origin"] != LOCAL):
                outcome.replaced.append(clash)
                gone.append(row)
                outcome.left.add(CellKey(row["issue"], row["build"], row["hardware"]))
            else:
                outcome.refused.append(clash)
    for rows in pieces(gone, _AT_ONCE):
        s.execute(sa.delete(attempts).where(attempts.c.id.in_([row["id"] for row in rows])))
    machine_tallies.subtract(s, [(row["machine"], row["hardware"], row["origin"]) for row in gone])
    return outcome


def _is_known(attempt: Attempt, row: sa.RowMapping, keys: "_LockKeys", voided: Collection[str]) -> bool:
    """Whether what stands under its number is as good: what counts, if it says the same, and what is voided for what is
    voided too.
    """
    return _is_same(attempt, row, keys) if row["void"] is None else attempt.id in voided


def _load_standing(s: Session, ids: Sequence[str]) -> Mapping[str, sa.RowMapping]:
    given = bulk_insert.given(s, ["id"], [(id_,) for id_ in ids])
    columns = (attempts.c.id, attempts.c.origin, attempts.c.token, attempts.c.void, *_SAID)
    rows = s.execute(sa.select(*columns).join_from(given, attempts, attempts.c.id == given.c.id)).mappings()
    return {row["id"]: row for row in rows}


def _is_same(attempt: Attempt, row: sa.RowMapping, keys: "_LockKeys") -> bool:
    """Whether both say the same. A lock is the same where its contents are, whatever it is called."""
    plain = [column.name for column in _SAID if column.name not in {"record", "lock_digest"}]
    if any(getattr(attempt, name) != row[name] for name in plain):
        return False
    if keys.of(attempt.lock_digest) != keys.of(row["lock_digest"]):
        return False
    text: str = row["record"]
    return codec.dump_record(attempt.record).decode() == text or attempt.record == codec.RECORD.validate_json(text)


class _LockKeys:
    """Keys of the locks in the store, as other stores know them, each asked for once."""

    def __init__(self, s: Session) -> None:
        self._s = s
        self._found: dict[str, str] = {"": ""}

    def of(self, name: str) -> str:
        """Of one that is not here, its own name."""
        if name not in self._found:
            self._found[name] = self._load(name) or name
        return self._found[name]

    def _load(self, name: str) -> str:
        text = self._s.execute(sa.select(locks.c.zlib).where(locks.c.digest == name)).scalar_one_or_none()
        query = sa.select(environments.c.packages, environments.c.imported).where(environments.c.lock_digest == name)
        row = self._s.execute(query).one_or_none()
        found = InstalledEnvironment(name, row.packages, row.imported) if row else None
        return lock_key(attempt_codec.unpack(text) or None, found)
