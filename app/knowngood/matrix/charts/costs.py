"""The measured costs of a cell's workarounds as dots with their intervals, and its attempts along a line of time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from knowngood.domain.grouping import grouped
from knowngood.domain.verdicts.workaround_cost import Cost, MedianCost
from knowngood.web.html import i18n


@dataclass(frozen=True)
class Dot:
    """A median at `x`, and how far single attempts lie apart, in percent of the width; `text` says the median."""

    x: float
    low: float
    high: float
    text: str


def cost_rows(titles: Mapping[str, str], costs: Mapping[str, Cost]) -> list[dict[str, Any]]:
    """A row for each workaround, in the order of `titles` (by id); memory is None where it was not recorded. All rows
    are on one scale, from nothing to the greatest.
    """
    pairs = [(title, costs[id_]) for id_, title in titles.items() if id_ in costs]
    sides = [side for _, cost in pairs for side in (cost.workaround, cost.control)]
    longest = max((side.seconds_range[1] for side in sides), default=0) or 1
    largest = max((side.peak_bytes_range[1] for side in sides), default=0) or 1
    return [
        {
            "title": title,
            "seconds": _seconds(cost.workaround, longest),
            "control_seconds": _seconds(cost.control, longest),
            "memory": _memory(cost.workaround, largest),
            "control_memory": _memory(cost.control, largest),
            "cost": cost,
        }
        for title, cost in pairs
    ]


# A dot at either end of the scale is drawn whole.
_EDGE = 3.0


def _at(value: float, most: float) -> float:
    return round(_EDGE + (100 - 2 * _EDGE) * value / most, 2)


def _seconds(side: MedianCost, most: float) -> Dot:
    low, high = side.seconds_range
    return Dot(_at(side.seconds, most), _at(low, most), _at(high, most), i18n.short_duration(side.seconds))


def _memory(side: MedianCost, most: int) -> Dot | None:
    low, high = side.peak_bytes_range
    if not side.peak_bytes:
        return None
    return Dot(_at(side.peak_bytes, most), _at(low, most), _at(high, most), i18n.size(side.peak_bytes))


@dataclass(frozen=True)
class Moment:
    """One attempt on the line of time: `sign` is its outcome's, `name` says the rest."""

    x: float
    sign: str
    name: str
    address: str
    is_counted: bool


def timeline(moments: Iterable[tuple[str, datetime, Moment]]) -> dict[str, Any] | None:
    """A line for each arm, over the same time. `moments` are (arm, time, moment), whose `x` is filled in here; the arms
    in the order in which they come. None where all of them are of one time: then there is no line to draw.
    """
    listed: Sequence[tuple[str, datetime, Moment]] = list(moments)
    times = [at for _, at, _ in listed]
    if not times or min(times) == max(times):
        return None
    first, last = min(times), max(times)
    span = (last - first).total_seconds()
    placed = ((arm, replace(moment, x=_at((at - first).total_seconds(), span))) for arm, at, moment in listed)
    lines = grouped(placed, lambda pair: pair[0])
    return {
        "lines": [(arm, [moment for _, moment in of]) for arm, of in lines.items()],
        "first": first,
        "last": last,
    }
