"""The cost of a workaround, as far as attempts tell: one whole call with it, beside the control's.

The control is the same computation without the suspect path, so that it is what the call would cost if the bug were
not there to be avoided. Both numbers are of a first call in a fresh process: what is compiled is compiled in it, and a
call made a thousand times costs less. Only like is compared with like: the same variant, machine and lock, and both
forked from a parent that had imported torch, or neither: importing it takes longer than most arms.
Where no such two passed, nothing is said.
Source: docs/decisions/006-arms-are-forked-and-a-gpu-has-one-arm.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from knowngood.domain.grouping import grouped
from knowngood.domain.issue import CONTROL


@dataclass(frozen=True)
class Timed:
    """A proven pass. `own_s` is wall time from after `import torch` to the last observation; `peak_bytes` the largest
    resident set of its processes.
    """

    arm: str
    variant: str
    machine: str
    lock: str
    is_forked: bool
    own_s: float
    peak_bytes: int


@dataclass(frozen=True)
class MedianCost:
    """Medians over `attempts`, and the least and greatest; `peak_bytes` is null where it was not recorded."""

    seconds: float
    peak_bytes: int | None
    attempts: int
    seconds_range: tuple[float, float]
    peak_bytes_range: tuple[int, int]


@dataclass(frozen=True)
class Cost:
    """One first call in a fresh process, compiling included: with the workaround, and the control's."""

    variant: str
    workaround: MedianCost
    control: MedianCost


_Place = tuple[str, str, str, bool]  # variant, machine, lock, forked or not


def costs_of(timed: Iterable[Timed], variants: Sequence[str]) -> Mapping[str, Cost]:
    """By arm; arms with nothing to compare are left out.

    Where several variants were measured it is the first of `variants`; on several machines, the one with most attempts.
    """

    def place(run: Timed) -> _Place:
        return run.variant, run.machine, run.lock, run.is_forked

    runs = grouped((run for run in timed if run.own_s > 0), lambda run: run.arm)
    by_arm = {arm: grouped(own, place) for arm, own in runs.items()}
    control = by_arm.pop(CONTROL, {})
    costs = {arm: _cost(places, control, variants) for arm, places in by_arm.items()}
    return {arm: cost for arm, cost in costs.items() if cost is not None}


def _cost(
    places: Mapping[_Place, Sequence[Timed]], control: Mapping[_Place, Sequence[Timed]], variants: Sequence[str]
) -> Cost | None:
    shared = [place for place in places if place in control and place[0] in variants]
    if not shared:
        return None
    best = min(shared, key=lambda place: (variants.index(place[0]), -len(places[place]), place))
    return Cost(best[0], _spent(places[best]), _spent(control[best]))


def _spent(timed: Sequence[Timed]) -> MedianCost:
    peaks = [run.peak_bytes for run in timed if run.peak_bytes]
    seconds = [run.own_s for run in timed]
    return MedianCost(
        seconds=median(seconds),
        peak_bytes=round(median(peaks)) if peaks else None,
        attempts=len(timed),
        seconds_range=(min(seconds), max(seconds)),
        peak_bytes_range=(min(peaks, default=0), max(peaks, default=0)),
    )
