"""New attempts, judged as they are stored: nothing is read back that was at hand."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC

from knowngood.domain.issue import Issue
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.timed_search import Searched
from knowngood.domain.verdicts.outcome import heeds_log
from knowngood.domain.verdicts.verdict import CellKey, judge
from knowngood.store.counters import attempt_counter
from knowngood.store.evidence import attempt_codec
from knowngood.store.evidence.cells import IncomingForCell, StoredCatalogue

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
    found: dict[tuple[str, str], Searched] = {}
    catalogue.read_ahead({cell_of(attempt) for attempt in coming})
    for attempt in coming:
        key = (attempt.id, attempt.log_digest)
        place = catalogue.find(cell_of(attempt))
        if place is None or key in found or not attempt_codec.counts(attempt, place.bindings):
            continue
        if attempt.log_digest not in logs and _wants_log(attempt, place.issue):
            continue
        searched = judge(attempt, place.issue, place.build, logs.get(attempt.log_digest, "")).searched
        if searched is not None:
            found[key] = searched
    return found


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
        self, attempt: Attempt, logs: Mapping[str, str], *, is_voided: bool, kept: Searched | None = None
    ) -> CountedAs:
        """The columns to store beside a new attempt. `logs` are those at hand, by digest; `kept` is what looking for
        the signature came to, where somebody looked before.
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
        judged = judge(attempt, place.issue, place.build, log, kept)
        if judged.measured_at.utcoffset():
            judged = replace(judged, measured_at=judged.measured_at.astimezone(UTC))  # as it comes back from the store
        arrived.judged.append(judged)
        self.counters[attempt_counter(attempt, judged.outcome)] += 1
        return CountedAs(judged.outcome.value, attempt_codec.searched_whole(attempt, place.issue, log, judged))

    def wants_log(self, attempt: Attempt) -> bool:
        """Whether what an attempt means may rest on its log."""
        place = self._catalogue.find(cell_of(attempt))
        return place is not None and _wants_log(attempt, place.issue)

    def _arrived(self, key: CellKey) -> IncomingForCell:
        """Where to note what is said of a cell; of one that is left out, where nobody looks."""
        self._held += 1
        if self._held == _HELD_AT_ONCE:
            self.arrived.clear()
        if self._held >= _HELD_AT_ONCE or key in self._left_out:
            return IncomingForCell()
        return self.arrived.setdefault(key, IncomingForCell())
