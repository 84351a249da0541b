"""Issues that amounts tell: the right result, with more memory or more work than it must take."""

import pytest

from knowngood.domain.issue import BASELINE, BOUNDS, CONTROL, Comparison, Observed, Signature, SignatureKind, Variant
from knowngood.domain.message import english
from knowngood.domain.observations import size_in_words
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.status import Prospect, fails, prospect_of, status_of
from knowngood.domain.verdicts.verdict import Cell, Judged, Verdict, WorkaroundVerdict, derive_cell
from knowngood.domain.vocabulary import StatusLabel
from tests.make import HARDWARE, make_build, make_issue, make_judged

BIGGER = make_issue(
    signature=Signature(SignatureKind.BIGGER), observed={"peak_bytes": BOUNDS[SignatureKind.BIGGER]}, silent=False
)
MORE_WORK = make_issue(
    signature=Signature(SignatureKind.MORE_WORK), observed={"recompiles": BOUNDS[SignatureKind.MORE_WORK]}, silent=False
)
MIB = 1 << 20


def ran(arm: str, amount: object, n: int = 1, variant: str = "default", key: str = "peak_bytes") -> Judged:
    return make_judged(Outcome.PASS, arm, variant, n, observed={key: str(amount), "sum": "1.0"})


def cell(*judged: Judged, issue: object = BIGGER) -> Cell:
    return derive_cell(issue, make_build(), HARDWARE, judged)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("control", "amount", "verdict"),
    [
        pytest.param(1000 * MIB, 1000 * MIB, Verdict.NOT_AFFECTED, id="as much"),
        pytest.param(1000 * MIB, 10 * MIB, Verdict.NOT_AFFECTED, id="far less"),
        pytest.param(1000 * MIB, 1032 * MIB, Verdict.NOT_AFFECTED, id="more than 3 %, and no more than 32 MiB"),
        pytest.param(1000 * MIB, 1032 * MIB + 1, Verdict.BIGGER, id="a byte above both"),
        pytest.param(4000 * MIB, 4120 * MIB, Verdict.NOT_AFFECTED, id="more than 32 MiB, and no more than 3 %"),
        pytest.param(4000 * MIB, 4120 * MIB + 1, Verdict.BIGGER, id="a byte above 3 %"),
        pytest.param(0, 32 * MIB + 1, Verdict.BIGGER, id="the control takes nothing"),
    ],
)
def test_memory_may_lie_above_the_controls_by_3_percent_and_32_mib(control: int, amount: int, verdict: Verdict) -> None:
    found = cell(ran(CONTROL, control), ran(BASELINE, amount), ran(BASELINE, amount, 2))
    assert found.verdict is verdict
    assert [one.most for one in found.amounts] == [control + max(32 * MIB, int(0.03 * control))]


@pytest.mark.parametrize(("amount", "verdict"), [(2, Verdict.NOT_AFFECTED), (3, Verdict.MORE_WORK)])
def test_of_work_anything_more_is_more(amount: int, verdict: Verdict) -> None:
    judged = [ran(CONTROL, 2, key="recompiles"), *(ran(BASELINE, amount, n, key="recompiles") for n in (1, 2))]
    assert cell(*judged, issue=MORE_WORK).verdict is verdict


def test_a_row_may_allow_more() -> None:
    issue = make_issue(
        signature=Signature(SignatureKind.BIGGER),
        observed={"peak_bytes": Observed(Comparison.AT_MOST, rtol=0.5, atol=0)},
    )
    judged = [ran(CONTROL, 100), ran(BASELINE, 150), ran(BASELINE, 150, 2)]
    assert cell(*judged, issue=issue).verdict is Verdict.NOT_AFFECTED


@pytest.mark.parametrize("amount", [100 * MIB, 500 * MIB])
def test_one_attempt_decides_nothing(amount: int) -> None:
    found = cell(ran(CONTROL, 100 * MIB), ran(BASELINE, amount))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert english(found.reason).endswith("; a second one has to agree")


def test_attempts_that_do_not_agree_are_flaky_and_never_bigger() -> None:
    judged = [ran(CONTROL, 100 * MIB), ran(BASELINE, 500 * MIB), ran(BASELINE, 100 * MIB, 2)]
    assert cell(*judged).verdict is Verdict.FLAKY


def test_without_a_control_nothing_is_said() -> None:
    assert cell(ran(BASELINE, 500 * MIB), ran(BASELINE, 500 * MIB, 2)).verdict is Verdict.INCONCLUSIVE


def test_the_largest_control_counts_so_that_a_lucky_one_makes_no_issue() -> None:
    controls = [ran(CONTROL, 100 * MIB), ran(CONTROL, 480 * MIB, 2)]
    assert cell(*controls, ran(BASELINE, 500 * MIB), ran(BASELINE, 500 * MIB, 2)).verdict is Verdict.NOT_AFFECTED


@pytest.mark.parametrize("told", ["many", "", "-5", "1.5", "1e9"])
def test_what_is_no_amount_says_nothing(told: str) -> None:
    found = cell(ran(CONTROL, 100), ran(BASELINE, told), ran(BASELINE, told, 2))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.differences


def test_a_wrong_result_beside_an_amount_outweighs_it() -> None:
    wrong = [
        make_judged(Outcome.PASS, BASELINE, "default", n, observed={"peak_bytes": str(500 * MIB), "sum": "7.0"})
        for n in (1, 2)
    ]
    assert cell(ran(CONTROL, 100 * MIB), *wrong).verdict is Verdict.INCONCLUSIVE


def test_a_failure_of_such_an_issue_is_another_failure() -> None:
    failures = [make_judged(Outcome.OTHER_FAILURE, n=n) for n in (1, 2)]
    assert cell(ran(CONTROL, 100 * MIB), *failures).verdict is Verdict.DIFFERENT_FAILURE


def test_every_variant_is_held_against_its_own_control() -> None:
    issue = make_issue(
        signature=Signature(SignatureKind.BIGGER),
        observed={"peak_bytes": BOUNDS[SignatureKind.BIGGER]},
        variants=(Variant("small", ""), Variant("large", "")),
    )
    judged = [ran(CONTROL, 100 * MIB, variant="small"), ran(CONTROL, 900 * MIB, variant="large")]
    judged += [ran(BASELINE, 100 * MIB, n, "small") for n in (1, 2)]
    judged += [ran(BASELINE, 900 * MIB, n, "large") for n in (1, 2)]
    assert cell(*judged, issue=issue).verdict is Verdict.NOT_AFFECTED


@pytest.mark.parametrize(
    ("amount", "verdict"),
    [(110 * MIB, WorkaroundVerdict.EFFECTIVE), (400 * MIB, WorkaroundVerdict.INEFFECTIVE)],
)
def test_a_workaround_helps_where_its_own_amount_is_within_the_bound(amount: int, verdict: WorkaroundVerdict) -> None:
    judged = [ran(CONTROL, 100 * MIB), ran(BASELINE, 500 * MIB), ran(BASELINE, 500 * MIB, 2)]
    found = cell(*judged, ran("aot_eager", amount), ran("aot_eager", amount, 2))
    assert found.workarounds["aot_eager"].verdict is verdict


def test_it_is_told_in_a_sentence_and_is_neither_a_failure_nor_a_pass() -> None:
    found = cell(ran(CONTROL, 1536 * 10**6), ran(BASELINE, 11153 * 10**6), ran(BASELINE, 11153 * 10**6, 2))
    assert english(found.reason) == "2 of 2 attempts took 11.2 GB (peak_bytes), where 1.5 GB are enough"
    assert status_of(found) is StatusLabel.BIGGER
    assert prospect_of(found) is Prospect.BIGGER
    assert not fails(found)
    assert found.silent is False


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (536_870_912, "536.9 MB")]
)
def test_sizes_are_said_in_powers_of_ten(size: int, words: str) -> None:
    assert size_in_words(size) == words
