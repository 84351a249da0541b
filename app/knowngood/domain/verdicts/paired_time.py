"""The time that a workaround costs, from pairs of fresh processes: with it, and without it before and after. And
whether an issue that time tells is there: with the suspect path, and without it before and after.

One block is three processes, `without`, `with`, `without` again, turned round in every second one, so that a drift of
the machine falls on both sides. Blocks are resampled (bootstrap), never iterations in a process: these agree with each
other more than the next process does. The control is what the two runs without it say of each other: where that is a
difference too, the machine is not quiet enough, and nothing is said; where it may be one, only what is greater is.
Sources: Bulej et al., ICPE 2020 (pairs); Laaber et al., EMSE 2019 (interleaved, resampled).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from math import exp, log
from statistics import fmean, median
from typing import TYPE_CHECKING

from knowngood.domain.builds.build import parse_build_id
from knowngood.domain.issue import COSTS
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.message import Message

if TYPE_CHECKING:  # an attempt has an outcome, and some outcomes rest on times
    from knowngood.domain.measuring.job import Attempt

THRESHOLD = 0.05
"""A smaller difference is none that anybody decides by."""

STEP, MOST = 10, 40
"""So many pairs at once, until the interval lies on one side of the threshold, or there are this many."""

_NOISE = 0.01  # what the control may be off by: its interval need not hold zero where all of it is next to it
_RESAMPLED = 1000
_OUTSIDE = 25  # of the resampled means, on either side of a 95 % interval

Block = tuple[float, float, float]
"""Seconds of one call without the workaround, with it, and without it again."""


class Says(StrEnum):
    COSTS = "costs"
    SAVES = "saves"
    NO_DIFFERENCE = "no_difference"
    CANNOT_SAY = "cannot_say"


@dataclass(frozen=True)
class TimeRatio:
    """The geometric mean of the ratios of `pairs`, with over without, and its 95 % interval: 1.12 costs 12 %."""

    ratio: float
    low: float
    high: float
    pairs: int

    def says(self, threshold: float = THRESHOLD) -> Says:
        """By the whole interval; where it lies on both sides of the threshold, nothing."""
        if self.low > 1 + threshold:
            return Says.COSTS
        if self.high < 1 - threshold:
            return Says.SAVES
        return Says.NO_DIFFERENCE if self.low > 1 - threshold and self.high < 1 + threshold else Says.CANNOT_SAY


@lru_cache(maxsize=MOST // STEP)
def _resamples(n: int) -> Sequence[Sequence[int]]:
    """Numbers below n by chance, n in each sample, the same ones each time (Knuth's linear congruential generator).

    To draw them anew for each interval was two thirds of what it took to load what is known (2026-11-30).
    """
    state, drawn = 1, list[int]()
    for _ in range(n * _RESAMPLED):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        drawn.append((state >> 33) % n)
    return tuple(zip(*[iter(drawn)] * n, strict=True))


@lru_cache(maxsize=512)  # a server loads the same costs whenever anything became known
def ratio_of(ratios: tuple[float, ...]) -> TimeRatio:
    """The same ratios give the same interval."""
    logs = [log(ratio) for ratio in ratios]
    means = sorted(fmean([logs[number] for number in drawn]) for drawn in _resamples(len(logs)))
    return TimeRatio(exp(fmean(logs)), exp(means[_OUTSIDE]), exp(means[-1 - _OUTSIDE]), len(ratios))


@dataclass(frozen=True)
class Compared:
    """The ratios that blocks tell: of the workaround, and of nothing, the same code without it twice; and how much of
    a difference counts.
    """

    cost: TimeRatio
    control: TimeRatio
    threshold: float = THRESHOLD

    @property
    def is_same(self) -> bool:
        """Whether the control may be no difference."""
        return self.control.low <= 1 + _NOISE and self.control.high >= 1 - _NOISE

    @property
    def says(self) -> Says:
        """Where the control's interval is wider than the threshold, only what lies beyond that interval too is said."""
        if self.is_same and self.control.says() is Says.NO_DIFFERENCE:
            return self.cost.says(self.threshold)
        beyond = self.cost.says(max(self.control.high, 1 / self.control.low) * (1 + self.threshold) - 1)
        return beyond if self.is_same and beyond is not Says.NO_DIFFERENCE else Says.CANNOT_SAY

    def in_words(self, form: str, said: Message) -> Message:
        """`costs 12 % (9 to 15; ...)`: the percentages, with what they rest on."""
        percent, low, high = (f"{100 * of - 100:.0f}" for of in (self.cost.ratio, self.cost.low, self.cost.high))
        if self.says is Says.SAVES:
            percent, low, high = (text.removeprefix("-") for text in (percent, high, low))
        return Message(f"{form}_{self.says}", percent=percent, low=low, high=high, said=said)


def compared(blocks: Sequence[Block], threshold: float = THRESHOLD) -> Compared:
    return Compared(
        ratio_of(tuple(with_it / (before * after) ** 0.5 for before, with_it, after in blocks)),
        ratio_of(tuple(after / before for before, _, after in blocks)),
        threshold,
    )


def blocks_of(observed: Mapping[str, str]) -> list[Block]:
    """The blocks that an attempt reports; none where they cannot be read, or are more than anything of ours makes: each
    costs a thousand draws.
    """
    try:
        read = json.loads(observed["us"])
        return [(float(before), float(with_it), float(after)) for before, with_it, after in read if len(read) <= MOST]
    except (KeyError, ValueError, TypeError):
        return []


def blocks_until_decided(block: Callable[[int], Block], threshold: float = THRESHOLD) -> tuple[Block, ...]:
    """As many blocks as it takes; `block` makes the one of this number. Its seconds are in the order of `Block`, in
    whatever order it ran: forwards where the number is even, else backwards.
    """
    made: list[Block] = []
    while len(made) < MOST and (not made or compared(made, threshold).says is Says.CANNOT_SAY):
        made += [block(number) for number in range(len(made), len(made) + STEP)]
    return tuple(made)


# What was measured of one workaround, as it is stored: an attempt of an arm of its own, which no verdict rests on.


@dataclass(frozen=True)
class TimedCost:
    """The time that a workaround takes on one build, beside the same code without it where that runs too.

    `timed` is `calls` (of what was compiled) or `whole` (one run of the repro's computation, its inputs and its check
    included). `without_s` and `with_s` are medians of one, and `first_without_s` and `first_with_s` the first ones,
    compiling included. `on` is the processor or the card, `cores` how many it had.
    """

    workaround: str
    build: str
    hardware: str
    variant: str
    timed: str
    on: str
    cores: int
    measured_at: datetime
    without_s: float
    with_s: float
    first_without_s: float
    first_with_s: float
    compared: Compared

    @property
    def in_words(self) -> Message:
        """`costs 12 % (9 to 15; 20 pairs, torch 2.11.0, 2026-11-29)`."""
        rests_on = Message(
            "timed_on",
            n=self.compared.cost.pairs,
            of=Message(f"timed_{self.timed}"),
            torch=parse_build_id(self.build).release,
            on=self.on,
            day=self.measured_at.date().isoformat(),
        )
        return self.compared.in_words("time", rests_on)


def as_observed(of: str, firsts: tuple[float, float], cores: int, blocks: Sequence[Block]) -> Mapping[str, str]:
    """As an attempt reports it: microseconds, to four figures."""
    listed = [[float(f"{1e6 * seconds:.4g}") for seconds in block] for block in blocks]
    return {
        "of": of,
        "cores": str(cores),
        "first_us": json.dumps([round(1e6 * s) for s in firsts]),
        "us": json.dumps(listed),
    }


def cost_of(attempt: "Attempt", machine: Machine | None) -> TimedCost | None:
    """The cost of which an attempt is the evidence; None where it is none that can be read."""
    cards = [gpu.name for gpu in machine.gpus if gpu.hardware == attempt.hardware] if machine else []
    observed = attempt.record.observed
    blocks = blocks_of(observed)
    try:
        first_without, first_with = json.loads(observed["first_us"])
        return TimedCost(
            workaround=attempt.arm.removeprefix(COSTS),
            build=attempt.build,
            hardware=attempt.hardware,
            variant=attempt.variant,
            timed=observed["of"],
            on=cards[0] if cards else machine.cpu_model if machine else "",
            cores=int(observed["cores"]),
            measured_at=attempt.finished_at,
            without_s=median(seconds for before, _, after in blocks for seconds in (before, after)) / 1e6,
            with_s=median(seconds for _, seconds, _ in blocks) / 1e6,
            first_without_s=first_without / 1e6,
            first_with_s=first_with / 1e6,
            compared=compared(blocks),
        )
    except (KeyError, ValueError, TypeError, ZeroDivisionError):
        return None
