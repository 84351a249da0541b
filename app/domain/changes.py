"""What changed in the matrix, made readable: one entry per issue and cause, however many steps a cell took.

While a run goes on, a cell passes through `not_run` and `inconclusive` on its way to an answer, and an import brings
thousands of cells at once. What is told is each cell as it was before the cause and as it is after it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from app.domain.build import parse_build_id
from app.domain.verdict import Verdict, WorkaroundVerdict


class Cause(StrEnum):
    """What made cells change: a run here, an imported bundle, or that they were derived anew from what was there."""

    RUN = "run"
    IMPORT = "import"
    DERIVED = "derived"


@dataclass(frozen=True)
class CellNews:
    """One step of one cell. None where there was, or is, no cell. `workarounds` are those with another verdict.

    `run` is empty where it was none; `origin` names where an imported bundle came from (empty: no import).
    """

    at: datetime
    issue: str
    build: str
    hardware: str
    before: Verdict | None
    after: Verdict | None
    reason: str = ""
    workarounds: Mapping[str, tuple[WorkaroundVerdict | None, WorkaroundVerdict | None]] = field(default_factory=dict)
    run: str = ""
    origin: str = ""

    @property
    def cause(self) -> Cause:
        if self.run:
            return Cause.RUN
        return Cause.IMPORT if self.origin else Cause.DERIVED

    @property
    def belongs_to(self) -> str:
        """The same for all that has one cause: the run, or the moment of the one commit."""
        return self.run or self.at.isoformat()


@dataclass(frozen=True)
class CellTurn:
    """A cell before and after a cause. `at` is when it came to be so, `reason` why it is so."""

    build: str
    hardware: str
    before: Verdict
    after: Verdict
    reason: str
    at: datetime
    workarounds: Mapping[str, tuple[WorkaroundVerdict, WorkaroundVerdict]]


@dataclass(frozen=True)
class Change:
    """What one cause did to one issue; `key` names the two for good. `turns` stand by class, then by release."""

    key: str
    at: datetime
    issue: str
    cause: Cause
    run: str
    origin: str
    turns: tuple[CellTurn, ...]


def changes_of(news: Iterable[CellNews]) -> tuple[Change, ...]:
    """Newest first. `news` stand in the order in which they happened; what ended as it began is left out."""
    grouped: dict[tuple[str, str], list[CellNews]] = {}
    for one in news:
        grouped.setdefault((one.issue, one.belongs_to), []).append(one)
    found = [_change(f"{issue} {cause}", steps) for (issue, cause), steps in grouped.items()]
    told = (change for change in found if change.turns)
    return tuple(sorted(told, key=lambda change: (change.at, change.issue), reverse=True))


def _change(key: str, steps: list[CellNews]) -> Change:
    cells: dict[tuple[str, str], list[CellNews]] = {}
    for one in steps:
        cells.setdefault((one.hardware, one.build), []).append(one)
    places = sorted(cells, key=lambda place: (place[0], parse_build_id(place[1])))
    turns = [turn for place in places if (turn := _turn(cells[place])) is not None]
    last = steps[-1]
    at = max((turn.at for turn in turns), default=last.at)
    return Change(key, at, last.issue, last.cause, last.run, last.origin, tuple(turns))


def _turn(steps: list[CellNews]) -> CellTurn | None:
    first, last = steps[0], steps[-1]
    before, after = first.before or Verdict.NOT_RUN, last.after or Verdict.NOT_RUN
    workarounds = _workarounds(steps)
    if before is after and not workarounds:
        return None
    return CellTurn(first.build, first.hardware, before, after, last.reason, last.at, workarounds)


def _workarounds(steps: list[CellNews]) -> dict[str, tuple[WorkaroundVerdict, WorkaroundVerdict]]:
    began: dict[str, WorkaroundVerdict] = {}
    ended: dict[str, WorkaroundVerdict] = {}
    for one in steps:
        for id_, (before, after) in one.workarounds.items():
            began.setdefault(id_, before or WorkaroundVerdict.UNVERIFIED)
            ended[id_] = after or WorkaroundVerdict.UNVERIFIED
    return {id_: (began[id_], ended[id_]) for id_ in began if began[id_] is not ended[id_]}
