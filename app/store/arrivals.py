"""What new attempts say of their cells, judged as they are stored: nothing is read back that was at hand."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC

from app.domain.job import Attempt
from app.domain.outcome import heeds_log
from app.domain.verdict import judge
from app.store import evidence
from app.store.cells import Arrived, Catalogue, CellKey
from app.store.counters import attempt_counter

_HELD_AT_ONCE = 100_000  # attempts whose judgement is kept: about 100 MB


@dataclass(frozen=True)
class Taken:
    """The outcome that a new attempt counts as from now on (None: it does not count, or is read back), and what looking
    for the signature came to, as it is kept.
    """

    counts_as: str | None = None
    searched: str | None = None


class Arrivals:
    """New attempts by cell, until their cells are derived (`cells.rederive`, with `arrived`).

    Where too many came to be held, and where a log is missing that may come yet, a cell is left out of `arrived`: it is
    then read back with all it has. `counters` are to be counted by whoever stores the attempts, for all cells.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self.keys: set[CellKey] = set()
        self.arrived: dict[CellKey, Arrived] = {}
        self.counters: Counter[str] = Counter()
        self.unknown = self.superseded = self.voided = 0
        self._left_out: set[CellKey] = set()
        self._held = 0

    def take(self, attempt: Attempt, logs: Mapping[str, str], *, is_voided: bool) -> Taken:
        """What to store beside a new attempt. `logs` are those at hand, by digest."""
        key = CellKey(attempt.issue, attempt.build, attempt.hardware)
        place = self._catalogue.find(key)
        self.voided += is_voided
        if place is None:
            self.unknown += 1
            return Taken()
        self.keys.add(key)
        is_current = evidence.counts(attempt, place.bindings)
        self.superseded += not is_current
        arrived = self._arrived(key)
        arrived.ids.add(attempt.id)
        if is_voided or not is_current:
            arrived.voided += is_voided
            arrived.superseded += not is_voided
            return Taken()
        if attempt.log_digest not in logs and attempt.log_digest and heeds_log(attempt.record):
            self.arrived.pop(key, None)
            self._left_out.add(key)
            return Taken()
        log = logs.get(attempt.log_digest, "")
        judged = judge(attempt, place.issue, place.build, log)
        if judged.measured_at.utcoffset():
            judged = replace(judged, measured_at=judged.measured_at.astimezone(UTC))  # as it comes back from the store
        arrived.judged.append(judged)
        self.counters[attempt_counter(attempt, judged.outcome)] += 1
        return Taken(judged.outcome.value, evidence.searched_whole(attempt, log, judged))

    def _arrived(self, key: CellKey) -> Arrived:
        """Where to note what is said of a cell; of one that is left out, where nobody looks."""
        self._held += 1
        if self._held == _HELD_AT_ONCE:
            self.arrived.clear()
        if self._held >= _HELD_AT_ONCE or key in self._left_out:
            return Arrived()
        return self.arrived.setdefault(key, Arrived())
