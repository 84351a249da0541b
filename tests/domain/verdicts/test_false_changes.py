"""The same question asked twice: what counts as a pair, as a change, and how sure a rate is."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowngood.domain.issue import BASELINE, BOUNDS, CONTROL, Issue, Signature, SignatureKind, Variant
from knowngood.domain.message import quoted
from knowngood.domain.rate import Rate
from knowngood.domain.verdicts.false_changes import (
    Again,
    AttemptTime,
    RepeatedPair,
    Trial,
    compared_machines,
    infrastructure_rate,
    pairs_of,
    recheck,
    spent,
)
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Cell, Judged, Verdict
from tests.make import HARDWARE, make_build, make_issue, make_judged

ISSUE = make_issue()
BIGGER = make_issue(
    "toy-3",
    signature=Signature(SignatureKind.BIGGER),
    observed={"peak_bytes": BOUNDS[SignatureKind.BIGGER]},
    silent=False,
)
TWO = make_issue("toy-2", variants=(Variant("n1", ""), Variant("n2", "")))
ISSUES = {issue.id: issue for issue in (ISSUE, TWO, BIGGER)}
BUILD = make_build()
PASS, MATCH, OTHER = Outcome.PASS, Outcome.MATCH, Outcome.OTHER_FAILURE
TIMEOUT, ENV, ABSENT = Outcome.TIMEOUT, Outcome.ENV_ERROR, Outcome.NOT_APPLICABLE


def trial(outcome: Outcome, arm: str = BASELINE, n: int = 1, issue: Issue = ISSUE, **changes: Any) -> Trial:
    """The `n`th attempt of an arm; `variant`, `machine` and what it is bound to may be said."""
    judged = make_judged(outcome, arm, changes.pop("variant", "default"), n, machine=changes.pop("machine", "m1"))
    judged = replace(judged, attempt=f"{judged.attempt}-{judged.machine}")
    fields = {"binding": f"{arm}-{judged.variant}", "lock": "lock-1", "ordinal": n}
    return Trial(issue.id, BUILD.id, HARDWARE, **{**fields, **changes}, judged=judged)


def trials(outcomes: Sequence[Outcome], arm: str = BASELINE, **changes: Any) -> list[Trial]:
    return [trial(outcome, arm, n, **changes) for n, outcome in enumerate(outcomes, start=1)]


def pairs(*found: Trial) -> tuple[RepeatedPair, ...]:
    return pairs_of(ISSUES, found)


@pytest.mark.parametrize(
    ("baseline", "first", "later"),
    [
        ([MATCH, MATCH], Verdict.AFFECTED, Verdict.AFFECTED),
        ([PASS, PASS, PASS], Verdict.NOT_AFFECTED, Verdict.NOT_AFFECTED),
        ([OTHER, OTHER], Verdict.DIFFERENT_FAILURE, Verdict.DIFFERENT_FAILURE),
        ([MATCH, PASS], Verdict.AFFECTED, Verdict.NOT_AFFECTED),
        ([PASS, OTHER], Verdict.NOT_AFFECTED, Verdict.DIFFERENT_FAILURE),
        ([MATCH, MATCH, PASS], Verdict.AFFECTED, Verdict.FLAKY),
        ([PASS, TIMEOUT], Verdict.NOT_AFFECTED, Verdict.INCONCLUSIVE),
        ([TIMEOUT, PASS], Verdict.INCONCLUSIVE, Verdict.NOT_AFFECTED),
        ([MATCH, ENV, MATCH], Verdict.AFFECTED, Verdict.AFFECTED),
        ([ENV, MATCH, PASS], Verdict.AFFECTED, Verdict.NOT_AFFECTED),
    ],
)
def test_the_first_attempt_is_held_against_all_later_ones(
    baseline: list[Outcome], first: Verdict, later: Verdict
) -> None:
    (pair,) = pairs(*trials([PASS], CONTROL), *trials(baseline))
    assert (pair.first, pair.later) == (first, later)
    assert pair.is_false_change is (first is not later)


@pytest.mark.parametrize(
    "baseline",
    [[MATCH], [MATCH, ENV], [ENV, PASS], [TIMEOUT, TIMEOUT], [ABSENT, ABSENT], []],
    ids=["once", "again in vain", "first in vain", "no answer", "nothing to ask", "never"],
)
def test_what_was_not_answered_twice_is_no_pair(baseline: list[Outcome]) -> None:
    assert pairs(*trials([PASS], CONTROL), *trials(baseline)) == ()


@pytest.mark.parametrize("change", [{"machine": "m2"}, {"lock": "lock-2"}, {"binding": "another"}])
def test_where_anything_changed_between_it_is_no_pair(change: dict[str, Any]) -> None:
    controls = [trial(PASS, CONTROL), trial(PASS, CONTROL, 2, **{k: v for k, v in change.items() if k != "binding"})]
    assert pairs(*controls, trial(MATCH), trial(PASS, n=2, **change)) == ()
    assert len(pairs(*controls, trial(MATCH), trial(PASS, n=2))) == 1


def test_two_attempts_of_a_row_of_amounts_are_held_against_the_later_ones() -> None:
    """One of them says nothing there, so that it is no answer that could change."""
    control = trial(PASS, CONTROL, issue=BIGGER)
    assert pairs(control, *trials([PASS] * 3, issue=BIGGER)) == ()
    (pair,) = pairs(control, *trials([PASS] * 4, issue=BIGGER))
    assert (pair.first, pair.later, pair.times) == (Verdict.NOT_AFFECTED, Verdict.NOT_AFFECTED, 2)


def test_a_control_that_fails_the_second_time_is_a_change() -> None:
    (pair,) = pairs(*trials([PASS, OTHER], CONTROL), *trials([MATCH, MATCH]))
    assert (pair.first, pair.later) == (Verdict.AFFECTED, Verdict.INCONCLUSIVE)


def test_each_variant_is_a_pair_with_its_own_control() -> None:
    controls = [trial(PASS, CONTROL, n, TWO, variant=v) for v in ("n1", "n2") for n in (1, 2)]
    baseline = [trial(one, BASELINE, n, TWO, variant="n1") for n, one in enumerate([MATCH, PASS], start=1)]
    steady = [trial(PASS, BASELINE, n, TWO, variant="n2") for n in (1, 2)]
    found = pairs(*controls, *baseline, *steady)
    assert {(pair.variant, pair.is_false_change) for pair in found} == {("n1", True), ("n2", False)}


def test_a_pair_names_the_attempt_that_speaks_against_the_first() -> None:
    (pair,) = pairs(*trials([PASS], CONTROL), *trials([MATCH, MATCH, PASS, MATCH]))
    assert (pair.first_attempt, pair.later_attempt) == (
        "baseline-default-match-1-m1",
        "baseline-default-pass-3-m1",
    )
    assert pair.times == 3


def test_an_issue_that_left_the_catalogue_is_passed_over() -> None:
    gone = [replace(one, issue="toy-9") for one in (*trials([PASS], CONTROL), *trials([MATCH, PASS]))]
    assert pairs(*gone) == ()
    assert compared_machines(ISSUES, gone) == ()


@given(st.lists(st.sampled_from([PASS, MATCH, OTHER, TIMEOUT, ENV]), max_size=6), st.randoms(use_true_random=False))
def test_the_order_in_which_trials_are_read_changes_nothing(baseline: list[Outcome], chance: Any) -> None:
    every = [*trials([PASS], CONTROL), *trials(baseline)]
    mixed = list(every)
    chance.shuffle(mixed)
    assert pairs(*mixed) == pairs(*every)


@given(st.integers(2, 6), st.sampled_from([PASS, MATCH, OTHER]))
def test_where_every_attempt_says_the_same_there_is_no_false_change(times: int, outcome: Outcome) -> None:
    (pair,) = pairs(*trials([PASS], CONTROL), *trials([outcome] * times))
    assert not pair.is_false_change


@pytest.mark.parametrize(
    ("there", "here", "varies"),
    [
        ([MATCH], [MATCH], False),
        ([MATCH], [PASS], True),
        ([MATCH, MATCH], [OTHER], True),
        ([MATCH, PASS], [MATCH], False),
    ],
    ids=["agree", "disagree", "fail differently", "flaky on one"],
)
def test_machines_that_disagree_and_each_agree_with_itself_are_told_apart_from_flaky_ones(
    there: list[Outcome], here: list[Outcome], varies: bool
) -> None:
    machines = {"m1": there, "m2": here}
    every = [one for m, told in machines.items() for one in trials(told, machine=m)]
    controls = [trial(PASS, CONTROL, machine=m) for m in machines]
    (compared,) = compared_machines(ISSUES, [*controls, *every])
    assert compared.varies is varies


def test_a_machine_without_an_answer_is_not_compared() -> None:
    controls = [trial(PASS, CONTROL, machine=m) for m in ("m1", "m2")]
    assert compared_machines(ISSUES, [*controls, trial(MATCH), trial(TIMEOUT, machine="m2")]) == ()
    assert compared_machines(ISSUES, [controls[0], trial(MATCH), trial(PASS, machine="m2")]) == ()


@pytest.mark.parametrize(
    ("part", "whole", "low", "high"),
    # Newcombe, Statistics in Medicine 17 (1998) 857, table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_interval_is_wilsons(part: int, whole: int, low: float, high: float) -> None:
    assert Rate(part, whole).interval == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_interval_holds_its_share_and_stays_within_none_and_all(counts: tuple[int, int]) -> None:
    rate = Rate(*counts)
    low, high = rate.interval
    assert 0 <= low <= rate.share <= high <= 1


def test_of_nothing_nothing_is_known() -> None:
    assert (Rate(0, 0).share, Rate(0, 0).interval) == (0.0, (0.0, 1.0))


def test_infrastructure_is_counted_among_all_attempts_that_count() -> None:
    counts = {PASS: 90, MATCH: 5, ENV: 3, Outcome.HARNESS_ERROR: 1, Outcome.CANCELLED: 1}
    assert infrastructure_rate(counts) == Rate(5, 100)


def test_time_is_told_apart_where_the_process_told_it() -> None:
    found = spent(
        [
            AttemptTime(5.0, 3.0, is_told=True),
            AttemptTime(2.0, 2.5, is_told=True),
            AttemptTime(60.0, 0.1, is_told=False),
        ]
    )
    assert (found.starting_s, found.arms_s, found.untold, found.untold_s) == (2.0, 5.0, 1, 60.0)
    assert found.total_s == 67.0
    assert found.attempts == 3


def new(*outcomes: Outcome) -> list[Judged]:
    return [make_judged(PASS, CONTROL), *(make_judged(one, n=n) for n, one in enumerate(outcomes, start=1))]


@pytest.mark.parametrize(
    ("judged", "again"),
    [
        (new(MATCH), Again.STAYED),
        (new(PASS), Again.CHANGED),
        (new(OTHER), Again.CHANGED),
        (new(TIMEOUT), Again.CHANGED),
        (new(ENV), Again.NO_ANSWER),
        (new(), Again.NO_ANSWER),
        ([], Again.NO_ANSWER),
        ([make_judged(OTHER, CONTROL), make_judged(MATCH)], Again.CHANGED),
        ([make_judged(ENV, CONTROL), make_judged(MATCH)], Again.NO_ANSWER),
    ],
    ids=["same", "passes", "otherwise", "hangs", "trouble", "half", "nothing", "control fails", "control in trouble"],
)
def test_asking_again_changes_a_verdict_only_by_an_answer(judged: list[Judged], again: Again) -> None:
    before = Cell(ISSUE.id, BUILD.id, HARDWARE, Verdict.AFFECTED, quoted("because"))
    assert recheck(ISSUE, BUILD, before, judged, planned=2).again is again
