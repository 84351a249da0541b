"""Costs of workarounds: like is compared with like, and nothing is said where there is no like."""

from dataclasses import replace

import pytest

from knowngood.domain.verdicts.workaround_cost import Cost, MedianCost, Timed, costs_of

CONTROL = Timed("control", "big", "m1", "lock1", is_forked=True, own_s=0.5, peak_bytes=400)
CURE = Timed("clone", "big", "m1", "lock1", is_forked=True, own_s=4.0, peak_bytes=500)


def test_a_workaround_stands_beside_the_control_of_the_same_variant_machine_and_lock() -> None:
    with_it = MedianCost(4.0, 500, 1, (4.0, 4.0), (500, 500))
    without = MedianCost(0.5, 400, 1, (0.5, 0.5), (400, 400))
    assert costs_of([CONTROL, CURE], ["big"]) == {"clone": Cost("big", with_it, without)}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"variant": "small"}, id="another variant is another computation"),
        pytest.param({"machine": "m2"}, id="another machine"),
        pytest.param({"lock": "lock2"}, id="another environment"),
        pytest.param({"is_forked": False}, id="importing torch takes longer than most arms"),
        pytest.param({"own_s": 0.0}, id="it could not say where its time went"),
    ],
)
def test_what_is_not_alike_is_not_compared(other: dict[str, object]) -> None:
    assert costs_of([CONTROL, replace(CURE, **other)], ["big", "small"]) == {}  # type: ignore[arg-type]


def test_without_a_control_or_a_variant_that_is_asked_for_nothing_is_said() -> None:
    assert costs_of([CURE], ["big"]) == {}
    assert costs_of([CONTROL, CURE], ["small"]) == {}
    assert costs_of([], []) == {}


def test_figures_are_medians_and_say_of_how_many_and_how_far_they_lie_apart() -> None:
    timed = [CONTROL, *(replace(CURE, own_s=seconds) for seconds in (1.0, 9.0, 2.0))]
    assert costs_of(timed, ["big"])["clone"].workaround == MedianCost(2.0, 500, 3, (1.0, 9.0), (500, 500))


def test_a_peak_that_was_not_recorded_is_none_of_the_peaks() -> None:
    timed = [CONTROL, CURE, replace(CURE, peak_bytes=0)]
    assert costs_of(timed, ["big"])["clone"].workaround == MedianCost(4.0, 500, 2, (4.0, 4.0), (500, 500))
    unknown = [replace(CONTROL, peak_bytes=0), CURE]
    assert costs_of(unknown, ["big"])["clone"].control.peak_bytes is None


def test_the_first_variant_counts_and_of_machines_the_one_with_most_attempts() -> None:
    here = [CONTROL, CURE, replace(CONTROL, variant="small"), replace(CURE, variant="small", own_s=1.0)]
    assert costs_of(here, ["small", "big"])["clone"].variant == "small"
    there = [replace(CONTROL, machine="m0"), replace(CURE, machine="m0", own_s=7.0)] * 2
    assert costs_of([*here, *there], ["big"])["clone"].workaround == MedianCost(7.0, 500, 2, (7.0, 7.0), (500, 500))
    assert costs_of(reversed([*here, *there]), ["big"]) == costs_of([*here, *there], ["big"])
