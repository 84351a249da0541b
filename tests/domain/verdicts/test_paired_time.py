"""What pairs of seconds say of a workaround's time."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import exp, log
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowngood.domain.issue import COSTS
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.message import english
from knowngood.domain.verdicts.paired_time import (
    MOST,
    STEP,
    Block,
    Says,
    as_observed,
    blocks_until_decided,
    compared,
    cost_of,
    ratio_of,
)
from tests.make import make_attempt, make_record

_RATIOS = st.floats(min_value=0.25, max_value=4)
_WIDE = [0.8, 1.25]  # ratios that far apart leave room on both sides of any threshold


def _blocks(ratios: Sequence[float], control: Sequence[float] = (1.0,)) -> list[Block]:
    return [
        (1.0, ratio * control[at % len(control)] ** 0.5, control[at % len(control)]) for at, ratio in enumerate(ratios)
    ]


@pytest.mark.parametrize(
    ("ratios", "control", "says"),
    [
        ([1.12] * 10, [1.0], Says.COSTS),
        ([0.8] * 10, [1.0], Says.SAVES),
        ([1.0] * 10, [1.0], Says.NO_DIFFERENCE),
        ([1.04, 0.98] * 5, [1.0], Says.NO_DIFFERENCE),
        ([1.05] * 10, [1.0], Says.CANNOT_SAY),  # on the threshold itself
        (_WIDE * 5, [1.0], Says.CANNOT_SAY),
        ([1.5] * 10, [1.2], Says.CANNOT_SAY),  # the same code is not the same: the machine is not quiet
        ([1.5] * 10, [0.8, 1.25], Says.COSTS),  # it may be the same: what is greater than its interval is said
        ([0.6] * 10, [0.8, 1.25], Says.SAVES),
        ([1.1] * 10, [0.8, 1.25], Says.CANNOT_SAY),
        ([1.0] * 10, [0.8, 1.25], Says.CANNOT_SAY),
        ([1.5] * 10, _WIDE, Says.COSTS),
        ([1.5] * 10, [1.03], Says.CANNOT_SAY),  # nor is a small difference that is always there
        ([1.5] * 10, [1.005], Says.COSTS),
    ],
)
def test_it_is_said_where_the_whole_interval_lies_beyond_five_percent_on_a_quiet_machine(
    ratios: list[float], control: list[float], says: Says
) -> None:
    assert compared(_blocks(ratios, control)).says is says


@given(st.lists(_RATIOS, min_size=2, max_size=4))
def test_the_interval_is_that_of_all_ways_to_draw_the_pairs_again(ratios: list[float]) -> None:
    every = sorted(exp(fmean(map(log, drawn))) for drawn in product(ratios, repeat=len(ratios)))

    def at(share: float) -> float:
        return every[round(share * (len(every) - 1))]

    found = ratio_of(tuple(ratios))
    assert at(0) * (1 - 1e-9) <= found.low <= at(0.05) * (1 + 1e-9)
    assert at(0.95) * (1 - 1e-9) <= found.high <= at(1) * (1 + 1e-9)


@given(st.lists(_RATIOS, min_size=1, max_size=MOST))
def test_the_interval_holds_the_ratio_and_lies_within_the_pairs(ratios: list[float]) -> None:
    found = ratio_of(tuple(ratios))
    room = 1 + 1e-9
    assert min(ratios) / room <= found.low <= found.ratio * room
    assert found.ratio / room <= found.high <= max(ratios) * room
    assert found.pairs == len(ratios)


@pytest.mark.parametrize(("ratios", "made"), [([1.2], STEP), (_WIDE, MOST), ([1.3, 1.2, 0.8, 1.1], MOST)])
def test_pairs_are_added_until_they_decide_or_cannot(ratios: list[float], made: int) -> None:
    numbers = []

    def block(number: int) -> Block:
        numbers.append(number)
        return _blocks(ratios * MOST)[number]

    assert len(blocks_until_decided(block)) == made
    assert numbers == list(range(made))


def _attempt(observed: dict[str, str]) -> Attempt:
    return replace(make_attempt(), arm=f"{COSTS}copy", record=make_record(observed=observed))


def test_a_cost_is_read_back_from_the_attempt_that_holds_it() -> None:
    blocks = _blocks([1.12] * 10)
    machine = Machine("Xeon", "avx2", 2, 1 << 33, "Debian", "6.1", "2.36", "g++ 12")
    cost = cost_of(_attempt(dict(as_observed("calls", (2.5, 3.0), 2, blocks))), machine)
    assert cost is not None
    assert (cost.workaround, cost.timed, cost.cores, cost.first_with_s) == ("copy", "calls", 2, 3.0)
    assert (cost.without_s, cost.with_s) == (1.0, 1.12)
    assert english(cost.in_words).startswith(
        "costs 12 % of time (12 to 12; 10 pairs of calls of compiled code, torch 2.6.0, Xeon, 2026-"
    )


@pytest.mark.parametrize(
    "observed",
    [
        {},
        {"us": "[]"},
        {"us": "[[1, 2]]", "first_us": "[1, 2]"},
        {"us": "[[0, 0, 0]]"},
        {"us": json.dumps([[1, 1, 1]] * (MOST + 1))},
    ],
)
def test_an_attempt_that_holds_something_else_says_nothing(observed: dict[str, str]) -> None:
    whole = {**as_observed("calls", (2.5, 3.0), 2, _blocks([1.12] * 10)), **observed}
    assert cost_of(_attempt(whole if observed else {}), None) is None


def test_a_saving_is_told_from_the_smaller_to_the_larger() -> None:
    blocks = _blocks([0.78, 0.82] * 5)
    cost = cost_of(_attempt(dict(as_observed("whole", (1, 1), 1, blocks))), None)
    assert cost is not None
    words = english(replace(cost, on="a card").in_words)
    low, high = json.loads(f"[{words.partition('(')[2].partition(';')[0].replace(' to ', ', ')}]")
    assert words.startswith("saves 20 % of time")
    assert 0 < low < 20 < high
