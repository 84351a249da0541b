"""The knowledge that every answer is made of; and that of two sources as one: a store of one's own, and what comes with
this release.

Of each cell the newer evidence counts, and what either lacks is taken from the other. A cell holds one date, that of
its baseline, and what it says of a workaround is about the variants that failed beside it. So the cell whose baseline
was measured last is taken whole (one that says something before one that says nothing), and of the other one only what
it alone tried: workarounds, where the very same variants failed. Anything finer would put together a sentence that
nobody measured. Evidence is shared only between rows that run the same.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, TypeVar

from knowngood.domain.hardware_classes import whole_classes
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import WatchList
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import (
    CONCLUSIVE,
    Cell,
    CellPlace,
    Verdict,
    is_flaky,
    with_findings_of,
)


@dataclass(frozen=True)
class Knowledge:
    """The knowledge that an answer stands on. `tested` are the builds that have any cell; `lists` the watch lists by
    name.
    """

    known: Known
    tested: frozenset[str]
    lists: Mapping[str, WatchList] = field(default_factory=dict)


@dataclass(frozen=True)
class Recorded:
    """The records beside cells: seconds by (issue, arm, variant), the mean of making an environment (None: never
    timed), and by issue the texts of a few failures.
    """

    durations: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    environment_s: float | None = None
    failures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


# Cells that are decoded when somebody asks for them: a question of the gate is about few of the many.


_Raw = TypeVar("_Raw")


class LazyCells(Mapping[CellPlace, Cell], Generic[_Raw]):
    """Read-only for whoever asks, and safe for many threads: two that ask for the same cell decode it twice at worst.

    Decoding all of 200,000 cells takes 11 s, reading their texts 1.5 s (one core of a shared machine, 2026-11-21).
    """

    def __init__(self, decode: Callable[[CellPlace, _Raw], Cell], raw: Mapping[CellPlace, _Raw]) -> None:
        self._decode = decode
        self._cells: dict[CellPlace, _Raw | Cell] = dict(raw)

    def with_changes(self, changed: Mapping[CellPlace, _Raw]) -> "LazyCells[_Raw]":
        """Another one with these in their new state; what was decoded stays so."""
        made: LazyCells[_Raw] = LazyCells(self._decode, {})
        made._cells = {**self._cells, **changed}
        return made

    def __getitem__(self, place: CellPlace) -> Cell:
        stored = self._cells[place]
        if isinstance(stored, Cell):
            return stored
        cell = self._decode(place, stored)
        self._cells[place] = cell
        return cell

    def __contains__(self, place: object) -> bool:
        return place in self._cells

    def __iter__(self) -> Iterator[CellPlace]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)


_NEVER = datetime.min.replace(tzinfo=UTC)


def together(own: Knowledge, other: Knowledge) -> Knowledge:
    """`own` with what `other` knows beside it. Issues, builds and watch lists of the same name are those of `own`."""
    alike = {
        id_
        for id_, issue in other.known.issues.items()
        if (mine := own.known.issues.get(id_)) is None or runs_the_same(mine, issue)
    }
    builds = {**other.known.builds, **own.known.builds}
    cells = _cells(own.known.cells, other.known.cells, alike)
    known = Known(
        issues=dict(sorted({**other.known.issues, **own.known.issues}.items())),
        builds={build.id: build for build in sorted(builds.values(), key=lambda build: build.build_id)},
        cells=cells,
        hardware=whole_classes(hardware for _, _, hardware in cells),
        as_of=own.known.as_of,
        flaky=_flaky(own.known, other.known, cells),
        wheels={**other.known.wheels, **own.known.wheels},
        costs={
            id_: {**(other.known.costs.get(id_, {}) if id_ in alike else {}), **own.known.costs.get(id_, {})}
            for id_ in {*other.known.costs, *own.known.costs}
        },
    )
    return Knowledge(known, frozenset(build for _, build, _ in cells), {**other.lists, **own.lists})


def recorded_together(own: Recorded, other: Recorded) -> Recorded:
    return Recorded(
        {**other.durations, **own.durations},
        other.environment_s if own.environment_s is None else own.environment_s,
        {**other.failures, **own.failures},
    )


def runs_the_same(issue: Issue, other: Issue) -> bool:
    """Whether results of one are results of the other: what a result is bound to is equal (`binding`)."""
    return _run(issue) == _run(other)


def _run(issue: Issue) -> tuple[object, ...]:
    arms = {arm.id: (arm.code, dict(arm.env)) for arm in issue.arms}
    variants = {variant.id: (dict(variant.params), variant.arms) for variant in issue.variants}
    return arms, variants, issue.packages


def _cells(own: Mapping[CellPlace, Cell], other: Mapping[CellPlace, Cell], alike: Collection[str]) -> LazyCells[None]:
    """One that both have is decoded and weighed when somebody asks for it."""

    def weigh(place: CellPlace, _: None) -> Cell:
        if place not in other or place[0] not in alike:
            return own[place]
        return newest_of(own[place], other[place]) if place in own else other[place]

    return LazyCells(weigh, dict.fromkeys((*own, *(place for place in other if place[0] in alike))))


def newest_of(own: Cell, other: Cell) -> Cell:
    """One cell of two about the same place. Where results of a worker were voided in the store, or the row cannot exist
    there by what the store knows of it, the store's cell stands: the other one knows nothing of that.
    """
    if own.voided or own.verdict is Verdict.NOT_APPLICABLE:
        return own
    first, second = (own, other) if _rank(own) >= _rank(other) else (other, own)
    return with_findings_of(first, second)


def _rank(cell: Cell) -> tuple[bool, datetime]:
    return cell.verdict in CONCLUSIVE, cell.measured_at or _NEVER


def _flaky(own: Known, other: Known, cells: Mapping[CellPlace, Cell]) -> frozenset[CellPlace] | None:
    """A cell is flaky only where one of the two that it is made of is."""
    if own.flaky is None or other.flaky is None:
        return None
    return frozenset(place for place in own.flaky | other.flaky if place in cells and is_flaky(cells[place]))
