"""The knowledge that every answer is made of."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import Cell, CellPlace
from knowngood.domain.watch_list import WatchList


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
