"""Issues that time tells: the right result, and longer than the same computation without the suspect path."""

from dataclasses import replace

import pytest

from knowngood.domain.issue import (
    BASELINE,
    BOUNDS,
    CONTROL,
    COSTS,
    Comparison,
    Issue,
    Observed,
    Signature,
    SignatureKind,
    cost_binding,
    environment_request,
    variants_of,
)
from knowngood.domain.measuring.planning import KnownAttempts, PlanRequest, plan_jobs
from knowngood.domain.message import english
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.paired_time import as_observed
from knowngood.domain.verdicts.status import Prospect, fails, prospect_of
from knowngood.domain.verdicts.verdict import Cell, Judged, Verdict, WorkaroundVerdict, derive_cell, judge
from knowngood.store.evidence.attempt_codec import counts, current_bindings
from tests.make import HARDWARE, make_attempt, make_build, make_issue, make_judged, make_record

OF_TIME = Signature(SignatureKind.SLOWER)
SLOWER = make_issue(
    signature=OF_TIME, observed={"percent": BOUNDS[SignatureKind.SLOWER]}, silent=False, workarounds=("module",)
)
BUILD = make_build()


def timed(ratio: float, arm: str = BASELINE, n: int = 1, *, again: float = 1.0, pairs: int = 10) -> Judged:
    """One comparison: so much longer than the control, which took `again` times as long when it ran once more."""
    return _timed(SLOWER, [ratio] * pairs, arm, n, again)


def _timed(issue: Issue, ratios: list[float], arm: str = BASELINE, n: int = 1, again: float = 1.0) -> Judged:
    blocks = [(1e-3, ratio * again**0.5 * 1e-3, again * 1e-3) for ratio in ratios]
    record = make_record(observed=as_observed("whole", (1.0, 1.0), 1, blocks), probes={}, sandbox=("process",))
    variant = variants_of(issue, BASELINE)[0]
    binding = cost_binding(issue, arm, variant, environment_request(issue, BUILD))
    attempt = replace(make_attempt(issue=issue, build=BUILD), arm=COSTS + arm, record=record, binding=binding)
    assert counts(attempt, current_bindings(issue, BUILD))
    return judge(replace(attempt, id=f"{n:032x}", variant=variant.id), issue, BUILD, "")


def cell(*judged: Judged, issue: Issue = SLOWER) -> Cell:
    return derive_cell(issue, BUILD, HARDWARE, judged)


@pytest.mark.parametrize(
    ("judged", "verdict", "reason"),
    [
        ([timed(1.38)], Verdict.SLOWER, "takes 38 % longer (38 to 38; 10 pairs)"),
        ([timed(1.06)], Verdict.SLOWER, "takes 6 % longer (6 to 6; 10 pairs)"),
        ([timed(1.04)], Verdict.NOT_AFFECTED, "takes as long as the control (4 to 4 % longer; 10 pairs)"),
        ([timed(0.5)], Verdict.NOT_AFFECTED, "takes 50 % less time (50 to 50; 10 pairs)"),
        ([_timed(SLOWER, [0.95, 1.2] * 5)], Verdict.INCONCLUSIVE, "the times leave open whether it takes longer"),
        ([timed(1.38, again=1.04)], Verdict.INCONCLUSIVE, "the machine was not quiet"),
        ([timed(1.38, pairs=9)], Verdict.INCONCLUSIVE, "returned without"),
        ([timed(1.38), timed(1.0, n=2)], Verdict.INCONCLUSIVE, "comes and goes: takes 38 % longer"),
        ([timed(1.38), timed(1.2, n=2)], Verdict.SLOWER, "takes 20 % longer"),
        ([timed(1.38), timed(1.0, n=2, again=1.2)], Verdict.SLOWER, "takes 38 % longer"),
        ([make_judged(Outcome.PASS, arm, "default") for arm in (CONTROL, BASELINE)], Verdict.NOT_RUN, "not run yet"),
    ],
)
def test_one_comparison_decides_by_its_whole_interval(judged: list[Judged], verdict: Verdict, reason: str) -> None:
    found = cell(*judged)
    assert (found.verdict, english(found.reason)[: len(reason)]) == (verdict, reason)


def test_it_neither_fails_nor_passes_and_says_how_long_it_takes() -> None:
    found = cell(timed(1.38))
    assert (prospect_of(found), fails(found), found.silent) == (Prospect.SLOWER, False, False)
    assert [(one.key, one.value, one.control, one.most) for one in found.amounts] == [("percent", 138, 100, 105)]


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [(1.0, WorkaroundVerdict.EFFECTIVE), (0.7, WorkaroundVerdict.EFFECTIVE), (1.3, WorkaroundVerdict.INEFFECTIVE)],
)
def test_a_workaround_is_held_against_the_control_too(ratio: float, verdict: WorkaroundVerdict) -> None:
    assert cell(timed(1.38), timed(ratio, "module", 2)).workarounds["module"].verdict is verdict


def test_a_row_may_ask_for_more() -> None:
    double = make_issue(signature=OF_TIME, observed={"percent": Observed(Comparison.AT_MOST, rtol=0.5, atol=0)})
    assert cell(_timed(double, [1.38] * 10), issue=double).verdict is Verdict.NOT_AFFECTED
    assert cell(_timed(double, [1.6] * 10), issue=double).verdict is Verdict.SLOWER


def test_no_run_measures_it() -> None:
    assert not plan_jobs([SLOWER], [BUILD], [HARDWARE], KnownAttempts(), PlanRequest(force=True))
