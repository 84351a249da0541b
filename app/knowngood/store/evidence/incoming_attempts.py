"""New attempts, judged as they are stored: nothing is read back that was at hand."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC

import sqlalchemy as sa

from knowngood.domain.issue import Issue
from knowngood.domain.measuring.job import LOCAL, Attempt
from knowngood.domain.timed_search import Searched
from knowngood.domain.verdicts.outcome import heeds_log
from knowngood.domain.verdicts.verdict import CellKey, judge
from knowngood.serialization import codec
from knowngood.serialization.lock_keys import InstalledEnvironment, lock_key
from knowngood.store import counters, statements
from knowngood.store.engine import Session
from knowngood.store.evidence import attempt_codec
from knowngood.store.evidence.cells import IncomingForCell, StoredCatalogue
from knowngood.store.records import Clash
from knowngood.store.statements import pieces
from knowngood.store.tables import attempts, environments, locks

_HELD_AT_ONCE = 100_000  # attempts whose judgement is kept: about 100 MB


@dataclass(frozen=True)
class CountedAs:
    """The outcome that a new attempt counts as from now on (None: it does not count, or is read back), and what looking
    for the signature came to, as it is kept.
    """

    counts_as: str | None = None
    searched: str | None = None


def cell_of(attempt: Attempt) -> CellKey:
    return CellKey(attempt.issue, attempt.build, attempt.hardware)


def look(
    catalogue: StoredCatalogue, coming: Sequence[Attempt], logs: Mapping[str, str]
) -> dict[tuple[str, str], Searched]:
    """Results of looking for signatures in attempts that are to come in, by attempt and log: it takes most of the
    time, and nobody need wait for it. Where another signature is asked for by then, somebody looks once more.
    """
    results: dict[tuple[str, str], Searched] = {}
    catalogue.read_ahead({cell_of(attempt) for attempt in coming})
    for attempt in coming:
        key = (attempt.id, attempt.log_digest)
        place = catalogue.find(cell_of(attempt))
        if place is None or key in results or not attempt_codec.counts(attempt, place.bindings):
            continue
        if attempt.log_digest not in logs and _wants_log(attempt, place.issue):
            continue
        searched = judge(attempt, place.issue, place.build, logs.get(attempt.log_digest, "")).searched
        if searched is not None:
            results[key] = searched
    return results


def _wants_log(attempt: Attempt, issue: Issue) -> bool:
    return bool(attempt.log_digest) and heeds_log(attempt.record, issue.signature)


class IncomingAttempts:
    """New attempts by cell, until their cells are derived (`cells.rederive`, with `arrived`).

    Where too many came to be held, and where a log is missing that may come yet, a cell is left out of `arrived`: it is
    then read back with all it has. `counters` are to be counted by whoever stores the attempts, for all cells.
    """

    def __init__(self, catalogue: StoredCatalogue) -> None:
        self._catalogue = catalogue
        self.keys: set[CellKey] = set()
        self.arrived: dict[CellKey, IncomingForCell] = {}
        self.counters: Counter[str] = Counter()
        self.unknown = self.superseded = self.voided = 0
        self._left_out: set[CellKey] = set()
        self._held = 0

    def take(
        self, attempt: Attempt, logs: Mapping[str, str], *, is_voided: bool, searched: Searched | None = None
    ) -> CountedAs:
        """The columns to store beside a new attempt. `logs` are those at hand, by digest; `searched` is what looking
        for the signature came to, where somebody looked before.
        """
        key = cell_of(attempt)
        place = self._catalogue.find(key)
        self.voided += is_voided
        if place is None:
            self.unknown += 1
            return CountedAs()
        self.keys.add(key)
        is_current = attempt_codec.counts(attempt, place.bindings)
        self.superseded += not is_current
        arrived = self._arrived(key)
        arrived.ids.add(attempt.id)
        if is_voided or not is_current:
            arrived.voided += is_voided
            arrived.superseded += not is_voided
            return CountedAs()
        if attempt.log_digest not in logs and _wants_log(attempt, place.issue):
            self.arrived.pop(key, None)
            self._left_out.add(key)
            return CountedAs()
        log = logs.get(attempt.log_digest, "")
        judged = judge(attempt, place.issue, place.build, log, searched)
        if judged.measured_at.utcoffset():
            judged = replace(judged, measured_at=judged.measured_at.astimezone(UTC))  # as it comes back from the store
        arrived.judged.append(judged)
        self.counters[counters.attempt_counter(attempt, judged.outcome)] += 1
        return CountedAs(judged.outcome.value, attempt_codec.searched_whole(attempt, place.issue, log, judged))

    def wants_log(self, attempt: Attempt) -> bool:
        """Whether what an attempt means may rest on its log."""
        place = self._catalogue.find(cell_of(attempt))
        return place is not None and _wants_log(attempt, place.issue)

    def _arrived(self, key: CellKey) -> IncomingForCell:
        """The place to note what arrives for a cell; for a cell that is left out, one that nobody reads."""
        self._held += 1
        if self._held == _HELD_AT_ONCE:
            self.arrived.clear()
        if self._held >= _HELD_AT_ONCE or key in self._left_out:
            return IncomingForCell()
        return self.arrived.setdefault(key, IncomingForCell())


# Attempts that come in under a number that is taken: the same once more, or something else.
#
# A number is known to whoever has read a bundle, and says nothing of who made what stands under it. So contents are
# compared. What is voided gives way to whatever is not; what came through a token gives way to what whoever has the
# database brought; what came from anywhere gives way to what our own dispatcher measured, which planned that number and
# has no second copy of it. Everything else stays, and what says otherwise is refused and told.


_NOT_COMPARED = {"id", "origin", "labels", "received_at", "token", "void", "counts_as", "searched"}
_COMPARED = tuple(column for column in attempts.columns if column.name not in _NOT_COMPARED)
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
        standing = _load_standing(s, [attempt.id for attempt in some])
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
    counters.subtract_tallies(s, [(row["machine"], row["hardware"], row["origin"]) for row in gone])
    return outcome


def _is_known(attempt: Attempt, row: sa.RowMapping, keys: "_LockKeys", voided: Collection[str]) -> bool:
    """Whether what stands under its number is as good: what counts, if it says the same, and what is voided for what is
    voided too.
    """
    return _is_same(attempt, row, keys) if row["void"] is None else attempt.id in voided


def _load_standing(s: Session, ids: Sequence[str]) -> Mapping[str, sa.RowMapping]:
    given = statements.given(s, ["id"], [(id_,) for id_ in ids])
    columns = (attempts.c.id, attempts.c.origin, attempts.c.token, attempts.c.void, *_COMPARED)
    rows = s.execute(sa.select(*columns).join_from(given, attempts, attempts.c.id == given.c.id)).mappings()
    return {row["id"]: row for row in rows}


def _is_same(attempt: Attempt, row: sa.RowMapping, keys: "_LockKeys") -> bool:
    """Whether both say the same. A lock is the same where its contents are, whatever it is called."""
    plain = [column.name for column in _COMPARED if column.name not in {"record", "lock_digest"}]
    if any(getattr(attempt, name) != row[name] for name in plain):
        return False
    if keys.of(attempt.lock_digest) != keys.of(row["lock_digest"]):
        return False
    text: str = row["record"]
    return codec.dump_record(attempt.record).decode() == text or attempt.record == codec.RECORD.validate_json(text)


class _LockKeys:
    """Keys of the locks in the store, as other stores know them, each loaded once."""

    def __init__(self, s: Session) -> None:
        self._s = s
        self._known: dict[str, str] = {"": ""}

    def of(self, name: str) -> str:
        """The key of a lock; of one that is not here, its own name."""
        if name not in self._known:
            self._known[name] = self._load(name) or name
        return self._known[name]

    def _load(self, name: str) -> str:
        text = self._s.execute(sa.select(locks.c.zlib).where(locks.c.digest == name)).scalar_one_or_none()
        query = sa.select(environments.c.packages, environments.c.imported).where(environments.c.lock_digest == name)
        row = self._s.execute(query).one_or_none()
        environment = InstalledEnvironment(name, row.packages, row.imported) if row else None
        return lock_key(attempt_codec.unpack(text) or None, environment)
