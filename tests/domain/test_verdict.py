"""Verdicts: the printed mixture table, truth tables, and properties over arbitrary outcomes."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.issue import BASELINE, CONTROL, Device, Issue, Requires, Signature, SignatureKind, Variant
from app.domain.outcome import Ending, Outcome, Trouble, TroubleCode
from app.domain.verdict import (
    INFRASTRUCTURE,
    Cell,
    Judged,
    Verdict,
    WorkaroundVerdict,
    derive_cell,
    is_stale,
    judge,
    mixture,
)
from tests.make import HARDWARE, NOON, make_attempt, make_build, make_issue, make_judged, make_record

GLOSSARY = Path(__file__).parents[2] / "GLOSSARY.md"
BUILD = make_build()
ISSUE = make_issue()
SILENT = make_issue(signature=Signature(SignatureKind.WRONG_RESULT))


def printed_table() -> list[tuple[str, str]]:
    table = GLOSSARY.read_text().partition("### The mixture table")[2].partition("Then, for the cell")[0]
    return [(a, b) for a, b in re.findall(r"^\| (.+?) \| (\w+) \|$", table, re.MULTILINE) if a != "outcomes"]


@pytest.mark.parametrize(("outcomes", "verdict"), printed_table())
def test_the_table_printed_in_the_glossary_is_the_rule(outcomes: str, verdict: str) -> None:
    names = [] if outcomes == "nothing" else outcomes.split(" + ")
    choices = [tuple(INFRASTRUCTURE) if name == "infrastructure" else (Outcome(name),) for name in names]
    for mixed in product(*choices):
        assert mixture(mixed) == verdict


def test_the_printed_table_holds_every_mixture() -> None:
    outcomes = 6  # match, pass, other_failure, crash, timeout, infrastructure
    assert len({row for row, _ in printed_table()}) == 2**outcomes - 1 + len(["not_applicable", "nothing"])


def cell(*judged: Judged, issue: Issue = ISSUE) -> Cell:
    return derive_cell(issue, BUILD, HARDWARE, judged)


def control(outcome: Outcome = Outcome.PASS, variant: str = "default") -> Judged:
    return make_judged(outcome, CONTROL, variant)


@pytest.mark.parametrize(
    ("controls", "verdict", "told"),
    [
        ([Outcome.PASS], Verdict.AFFECTED, Outcome.PASS),
        ([Outcome.PASS, Outcome.ENV_ERROR], Verdict.AFFECTED, Outcome.PASS),
        ([Outcome.HARNESS_ERROR, Outcome.PASS], Verdict.AFFECTED, Outcome.PASS),
        ([Outcome.OTHER_FAILURE], Verdict.INCONCLUSIVE, Outcome.OTHER_FAILURE),
        ([Outcome.MATCH], Verdict.INCONCLUSIVE, Outcome.MATCH),
        ([Outcome.CRASH], Verdict.INCONCLUSIVE, Outcome.CRASH),
        ([Outcome.TIMEOUT], Verdict.INCONCLUSIVE, Outcome.TIMEOUT),
        ([Outcome.ENV_ERROR], Verdict.INCONCLUSIVE, Outcome.ENV_ERROR),
        ([Outcome.PASS, Outcome.OTHER_FAILURE], Verdict.INCONCLUSIVE, Outcome.OTHER_FAILURE),
        ([], Verdict.INCONCLUSIVE, None),
    ],
)
def test_a_match_counts_only_beside_a_control_that_passed(
    controls: Sequence[Outcome], verdict: Verdict, told: Outcome | None
) -> None:
    judged = [make_judged(outcome, CONTROL, n=n) for n, outcome in enumerate(controls)]
    found = cell(make_judged(Outcome.MATCH), *judged)
    assert found.verdict is verdict
    assert found.control is told
    assert found.line, "the match is kept as evidence"


def test_a_failed_control_is_named_as_the_reason() -> None:
    assert cell(make_judged(Outcome.MATCH), control(Outcome.OTHER_FAILURE)).reason.startswith("control failed: because")


THREE = make_issue(variants=(Variant("n1", ""), Variant("n2", ""), Variant("n3", "", arms=(CONTROL, BASELINE))))


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ([Outcome.PASS, Outcome.PASS, Outcome.PASS], Verdict.NOT_AFFECTED),
        ([Outcome.PASS, Outcome.MATCH, Outcome.PASS], Verdict.AFFECTED),
        ([Outcome.PASS, Outcome.MATCH, Outcome.OTHER_FAILURE], Verdict.AFFECTED),
        ([Outcome.PASS, Outcome.OTHER_FAILURE, Outcome.ENV_ERROR], Verdict.DIFFERENT_FAILURE),
        ([Outcome.PASS, Outcome.ENV_ERROR, Outcome.PASS], Verdict.INCONCLUSIVE),
        ([Outcome.PASS, None, Outcome.PASS], Verdict.INCONCLUSIVE),
        ([Outcome.PASS, Outcome.NOT_APPLICABLE, Outcome.PASS], Verdict.NOT_AFFECTED),
        ([Outcome.NOT_APPLICABLE, Outcome.NOT_APPLICABLE, Outcome.NOT_APPLICABLE], Verdict.NOT_APPLICABLE),
        ([None, None, None], Verdict.NOT_RUN),
        ([None, Outcome.MATCH, None], Verdict.AFFECTED),
    ],
)
def test_a_cell_is_judged_over_its_variants(outcomes: Sequence[Outcome | None], verdict: Verdict) -> None:
    judged = [control(variant=f"n{n}") for n in (1, 2, 3)]
    judged += [make_judged(one, variant=f"n{n}") for n, one in enumerate(outcomes, start=1) if one]
    assert cell(*judged, issue=THREE).verdict is verdict


def test_a_flaky_variant_says_how_often() -> None:
    judged = [make_judged(Outcome.MATCH, n=n) for n in range(2)] + [make_judged(Outcome.PASS, n=n) for n in range(2, 5)]
    found = cell(control(), *judged)
    assert (found.verdict, found.variants[0].k, found.variants[0].n) == (Verdict.FLAKY, 2, 5)


@pytest.mark.parametrize(
    ("on_one", "on_other", "is_said"),
    [
        ([Outcome.PASS], [Outcome.CRASH], True),
        ([Outcome.PASS, Outcome.PASS], [Outcome.MATCH], True),
        ([Outcome.MATCH], [Outcome.OTHER_FAILURE], True),
        ([Outcome.PASS], [Outcome.PASS], False),
        ([Outcome.PASS, Outcome.MATCH], [Outcome.MATCH], False),  # one of them does not even agree with itself
        ([Outcome.PASS], [Outcome.ENV_ERROR], False),
    ],
)
def test_a_cell_says_where_its_machines_disagree(on_one: list[Outcome], on_other: list[Outcome], is_said: bool) -> None:
    baseline = [make_judged(outcome, n=n, machine="one") for n, outcome in enumerate(on_one)]
    baseline += [make_judged(outcome, n=9 + n, machine="other") for n, outcome in enumerate(on_other)]
    assert cell(control(), *baseline).reason.startswith("varies by machine: ") == is_said


def test_no_wheel_is_told_apart_from_not_applicable() -> None:
    gone = make_judged(Outcome.NOT_APPLICABLE, no_build=True, reason="no wheels with a matching Python ABI tag")
    found = cell(gone)
    assert (found.verdict, found.reason) == (Verdict.NO_BUILD, "no wheels with a matching Python ABI tag")


TOO_OLD = "driver 550.54 supports CUDA up to 12.4 and the build needs 13.0"


def unserved(arm: str = BASELINE, n: int = 9) -> Judged:
    return make_judged(Outcome.ENV_ERROR, arm, n=n, reason=TOO_OLD, unserved=True)


def test_what_no_host_could_serve_is_not_run_and_says_why() -> None:
    found = cell(unserved(CONTROL), unserved())
    assert (found.verdict, found.reason, found.measured_at) == (Verdict.NOT_RUN, TOO_OLD, None)
    assert found.evidence == unserved().attempt
    assert {one.verdict for one in found.workarounds.values()} == {WorkaroundVerdict.UNVERIFIED}


@pytest.mark.parametrize("outcome", [one for one in Outcome if one is not Outcome.CANCELLED])
def test_any_answer_of_another_host_wins_over_one_that_could_not_serve(outcome: Outcome) -> None:
    measured = [control(), make_judged(outcome)]
    assert cell(*measured, unserved(CONTROL), unserved()) == cell(*measured)


def test_a_driver_that_is_too_old_is_told_apart_in_the_evidence() -> None:
    trouble = Trouble(TroubleCode.DRIVER_TOO_OLD, TOO_OLD)
    record = make_record(ending=Ending.NOT_STARTED, imported={}, trouble=trouble)
    judged = judge(make_attempt(record=record), ISSUE, BUILD, "")
    assert (judged.outcome, judged.unserved) == (Outcome.ENV_ERROR, True)
    assert judged.outcome in INFRASTRUCTURE, "never counted as done, so that another host can be asked"


def test_a_wheel_without_code_for_the_card_does_not_apply() -> None:
    trouble = Trouble(TroubleCode.NO_CODE_FOR_CARD, "the wheel holds code for sm_80, none of which runs on sm_120")
    record = make_record(ending=Ending.NOT_STARTED, imported={}, trouble=trouble)
    found = cell(*(judge(make_attempt(record=record, arm=arm), ISSUE, BUILD, "") for arm in (CONTROL, BASELINE)))
    assert (found.verdict, found.reason) == (Verdict.NOT_APPLICABLE, trouble.sentence)


def test_an_issue_that_needs_a_gpu_does_not_apply_on_a_cpu_and_says_why() -> None:
    found = cell(issue=make_issue(requires=Requires(device=Device.CUDA)))
    assert found.verdict is Verdict.NOT_APPLICABLE
    assert "GPU" in found.reason


@pytest.mark.parametrize(
    ("baseline", "arm", "marked", "expected"),
    [
        (Outcome.MATCH, Outcome.PASS, "", WorkaroundVerdict.EFFECTIVE),
        (Outcome.MATCH, Outcome.MATCH, "", WorkaroundVerdict.INEFFECTIVE),
        (Outcome.MATCH, Outcome.OTHER_FAILURE, "", WorkaroundVerdict.INEFFECTIVE),
        (Outcome.MATCH, Outcome.CRASH, "", WorkaroundVerdict.INEFFECTIVE),
        (Outcome.MATCH, Outcome.OTHER_FAILURE, "wrong_result", WorkaroundVerdict.HARMFUL),
        (Outcome.MATCH, Outcome.TIMEOUT, "", WorkaroundVerdict.UNVERIFIED),
        (Outcome.MATCH, Outcome.ENV_ERROR, "", WorkaroundVerdict.UNVERIFIED),
        (Outcome.MATCH, Outcome.NOT_APPLICABLE, "", WorkaroundVerdict.UNVERIFIED),
        (Outcome.MATCH, None, "", WorkaroundVerdict.UNVERIFIED),
        (Outcome.PASS, Outcome.PASS, "", WorkaroundVerdict.UNNECESSARY),
        (Outcome.PASS, Outcome.MATCH, "", WorkaroundVerdict.HARMFUL),
        (Outcome.PASS, Outcome.OTHER_FAILURE, "", WorkaroundVerdict.HARMFUL),
        (Outcome.OTHER_FAILURE, Outcome.PASS, "", WorkaroundVerdict.UNVERIFIED),
        (Outcome.ENV_ERROR, Outcome.PASS, "", WorkaroundVerdict.UNVERIFIED),
        (None, Outcome.PASS, "", WorkaroundVerdict.UNVERIFIED),
    ],
)
def test_a_workaround_is_judged_beside_its_baseline(
    baseline: Outcome | None, arm: Outcome | None, marked: str, expected: WorkaroundVerdict
) -> None:
    judged = [control()]
    judged += [make_judged(baseline)] if baseline else []
    judged += [make_judged(arm, "aot_eager", marked=marked)] if arm else []
    assert cell(*judged).workarounds["aot_eager"].verdict is expected


def test_a_workaround_that_only_turns_silence_into_an_error_is_ineffective_and_says_so() -> None:
    judged = [control(), make_judged(Outcome.MATCH), make_judged(Outcome.OTHER_FAILURE, "aot_eager")]
    found = cell(*judged, issue=SILENT).workarounds["aot_eager"]
    assert (found.verdict, found.note[:13]) == (WorkaroundVerdict.INEFFECTIVE, "makes it loud")


def test_a_workaround_that_passes_and_fails_does_not_help() -> None:
    judged = [control(), make_judged(Outcome.MATCH)]
    judged += [make_judged(outcome, "aot_eager", n=n) for n, outcome in enumerate((Outcome.PASS, Outcome.MATCH))]
    found = cell(*judged).workarounds["aot_eager"]
    assert (found.verdict, found.note[:15]) == (WorkaroundVerdict.INEFFECTIVE, "not every time:")


M, P, F, T = Outcome.MATCH, Outcome.PASS, Outcome.OTHER_FAILURE, Outcome.TIMEOUT


@pytest.mark.parametrize(
    ("baselines", "arms", "expected", "note"),
    [
        ("MMM", "PPP", WorkaroundVerdict.EFFECTIVE, ""),
        ("MMM", "PP-", WorkaroundVerdict.PARTIAL, "helps with n1, n2; not tried with n3"),
        ("MMM", "PM-", WorkaroundVerdict.PARTIAL, "helps with n1; fails with n2; not tried with n3"),
        ("MMM", "PFT", WorkaroundVerdict.PARTIAL, "helps with n1; fails with n2; no answer with n3 (because timeout)"),
        ("MMM", "M--", WorkaroundVerdict.INEFFECTIVE, "error: conflicting declaration 'int64_t tmp_acc0_arr [2]'"),
        ("MMM", "---", WorkaroundVerdict.UNVERIFIED, "not run yet"),
        ("MMM", "T--", WorkaroundVerdict.UNVERIFIED, "because timeout"),
        ("MPP", "P--", WorkaroundVerdict.EFFECTIVE, ""),
        ("MPP", "-PP", WorkaroundVerdict.UNVERIFIED, "not run yet"),
        ("MPP", "PM-", WorkaroundVerdict.HARMFUL, "the baseline passes, with it: because match"),
        ("MTP", "P--", WorkaroundVerdict.EFFECTIVE, ""),
        ("MT-", "PMM", WorkaroundVerdict.EFFECTIVE, ""),
        ("BPP", "P--", WorkaroundVerdict.EFFECTIVE, ""),
        ("BMP", "P--", WorkaroundVerdict.PARTIAL, "helps with n1; not tried with n2"),
        ("BMP", "-P-", WorkaroundVerdict.PARTIAL, "helps with n2; not tried with n1"),
        ("PPP", "P--", WorkaroundVerdict.UNNECESSARY, ""),
        ("PPP", "---", WorkaroundVerdict.UNVERIFIED, "not run yet"),
        ("PPP", "PT-", WorkaroundVerdict.UNVERIFIED, "because timeout"),
        ("PPT", "PP-", WorkaroundVerdict.UNVERIFIED, "the baseline here is inconclusive"),
        ("FPP", "PPP", WorkaroundVerdict.UNVERIFIED, "the baseline here is different_failure"),
    ],
)
def test_a_workaround_counts_over_the_variants_that_fail(
    baselines: str, arms: str, expected: WorkaroundVerdict, note: str
) -> None:
    """A letter for each variant: Match, Pass, Failed otherwise, Timeout, B: one attempt matched and one passed."""
    said = {"M": [M], "P": [P], "F": [F], "T": [T], "B": [M, P], "-": []}
    judged = [control(variant=v) for v in ("n1", "n2", "n3")]
    for arm, letters in ((BASELINE, baselines), ("aot_eager", arms)):
        for letter, variant in zip(letters, ("n1", "n2", "n3"), strict=True):
            judged += [make_judged(outcome, arm, variant, n) for n, outcome in enumerate(said[letter])]
    found = cell(*judged, issue=THREE).workarounds["aot_eager"]
    assert (found.verdict, found.note) == (expected, note)


def test_a_workaround_left_out_of_a_variant_says_why() -> None:
    left_out = replace(THREE.variants[1], arms=("control", "baseline"), why_not="needs a second GPU")
    issue = replace(THREE, variants=(THREE.variants[0], left_out, THREE.variants[2]))
    judged = [one for v in ("n1", "n2") for one in (control(variant=v), make_judged(M, variant=v))]
    judged += [control(variant="n3"), make_judged(P, variant="n3"), make_judged(P, "aot_eager", "n1")]
    found = cell(*judged, issue=issue).workarounds["aot_eager"]
    assert (found.verdict, found.note) == (
        WorkaroundVerdict.PARTIAL,
        "helps with n1; not tried with n2 (needs a second GPU)",
    )


@pytest.mark.parametrize(
    ("baselines", "reported", "verdict", "words"),
    [
        ("MP", 1, Verdict.AFFECTED, "; as reported (n2) it passes"),
        ("MP", 0, Verdict.AFFECTED, ""),
        ("MP", None, Verdict.AFFECTED, ""),
        ("FM", 0, Verdict.AFFECTED, "; as reported (n1) it fails differently"),
        ("MT", 1, Verdict.AFFECTED, ""),
        ("FP", 1, Verdict.DIFFERENT_FAILURE, "; as reported (n2) it passes"),
    ],
)
def test_a_cell_is_its_worst_variant_and_says_what_the_reports_own_does(
    baselines: str, reported: int | None, verdict: Verdict, words: str
) -> None:
    variants = tuple(Variant(f"n{at + 1}", "", is_reported=at == reported) for at in range(2))
    judged = [control(variant=one.id) for one in variants]
    said = {"M": M, "P": P, "F": F, "T": T}
    judged += [make_judged(said[letter], variant=f"n{at + 1}") for at, letter in enumerate(baselines)]
    found = cell(*judged, issue=make_issue(variants=variants))
    assert (found.verdict, found.reason.endswith(words)) == (verdict, True)
    assert ("as reported" in found.reason, found.as_reported is not None) == (bool(words), bool(words))


@pytest.mark.parametrize(
    ("baselines", "runs"), [("M", 1), ("MMM", 3), ("P", 1), ("PP", 2), ("T", 0), ("MP", 2), ("F", 1)]
)
def test_a_verdict_rests_on_so_many_runs(baselines: str, runs: int) -> None:
    said = {"M": M, "P": P, "F": F, "T": T}
    judged = [control(), *(make_judged(said[letter], n=n) for n, letter in enumerate(baselines))]
    assert cell(*judged).runs == runs


def test_a_variant_that_does_not_apply_leaves_no_workaround_without_a_verdict() -> None:
    judged = [control(variant=v) for v in ("n1", "n2", "n3")]
    judged += [make_judged(Outcome.MATCH, variant=v) for v in ("n1", "n2")]
    judged += [make_judged(Outcome.PASS, "aot_eager", v) for v in ("n1", "n2")]
    absent = [make_judged(Outcome.NOT_APPLICABLE, arm, "n3") for arm in (BASELINE, "aot_eager")]
    found = cell(*judged, *absent, issue=THREE)
    assert (found.verdict, found.workarounds["aot_eager"].verdict) == (Verdict.AFFECTED, WorkaroundVerdict.EFFECTIVE)


def test_a_workaround_for_other_releases_does_not_apply_and_is_not_missing() -> None:
    arms = tuple(replace(arm, applies_to=">=2.8") if arm.id == "aot_eager" else arm for arm in ISSUE.arms)
    found = cell(control(), make_judged(Outcome.MATCH), issue=replace(ISSUE, arms=arms)).workarounds["aot_eager"]
    assert (found.verdict, found.applies) == (WorkaroundVerdict.UNVERIFIED, False)
    assert found.note == "does not apply to this build: this workaround is for torch >=2.8"


NA, ENV = Outcome.NOT_APPLICABLE, Outcome.ENV_ERROR


@pytest.mark.parametrize(
    ("outcomes", "applies"),
    [
        ({"n1": [NA], "n2": [NA], "n3": [NA]}, False),
        ({"n1": [NA, ENV], "n2": [NA], "n3": [NA, NA]}, False),
        ({"n1": [], "n2": [NA], "n3": [NA]}, True),
        ({"n1": [ENV], "n2": [NA], "n3": [NA]}, True),
        ({"n1": [Outcome.TIMEOUT], "n2": [NA], "n3": [NA]}, True),
        ({"n1": [], "n2": [], "n3": []}, True),
    ],
    ids=["all said so", "trouble beside it says nothing", "one not asked", "one in vain", "one can be tried", "none"],
)
def test_a_workaround_that_cannot_be_tried_says_so_itself_with_every_variant(
    outcomes: dict[str, list[Outcome]], applies: bool
) -> None:
    judged = [one for v in outcomes for one in (control(variant=v), make_judged(Outcome.MATCH, variant=v))]
    judged += [make_judged(one, "aot_eager", v, n) for v, said in outcomes.items() for n, one in enumerate(said)]
    found = cell(*judged, issue=THREE).workarounds["aot_eager"]
    assert (found.verdict, found.applies) == (WorkaroundVerdict.UNVERIFIED, applies)
    assert applies or found.note == f"does not apply to this build: because {NA}"


def test_a_build_that_cannot_be_had_says_nothing_of_a_workaround() -> None:
    gone = [make_judged(NA, arm, no_build=True) for arm in (BASELINE, "aot_eager")]
    assert cell(*gone).workarounds["aot_eager"].applies


def test_a_hang_beside_a_slow_control_is_only_a_timeout() -> None:
    hang = make_issue(signature=Signature(SignatureKind.HANG, "pool"), timeout_s=60)
    slow, quick = make_judged(Outcome.PASS, CONTROL, wall_s=7.0), make_judged(Outcome.PASS, CONTROL, wall_s=5.0)
    assert cell(make_judged(Outcome.MATCH), slow, issue=hang).verdict is Verdict.INCONCLUSIVE
    assert cell(make_judged(Outcome.MATCH), quick, issue=hang).verdict is Verdict.AFFECTED
    lost = make_judged(Outcome.HARNESS_ERROR, CONTROL, wall_s=7.0)
    assert cell(make_judged(Outcome.MATCH), quick, lost, issue=hang).verdict is Verdict.AFFECTED


def test_old_evidence_is_marked_stale_by_the_kind_of_build() -> None:
    found = cell(make_judged(Outcome.PASS), control())
    nightly = make_build("2.12.0.dev20260401+cu130")
    assert not is_stale(found, BUILD, NOON + timedelta(days=179))
    assert is_stale(found, BUILD, NOON + timedelta(days=181))
    assert is_stale(found, nightly, NOON + timedelta(days=8))


ARMS = st.sampled_from([BASELINE, CONTROL, "aot_eager"])
JUDGED = st.builds(
    make_judged,
    st.sampled_from(Outcome),
    ARMS,
    st.sampled_from(["n1", "n2", "n3"]),
    st.integers(0, 3),
)
UNSERVED = st.builds(unserved, ARMS, st.integers(4, 9))
EVIDENCE = st.lists(JUDGED, max_size=14)


@given(EVIDENCE)
def test_not_affected_means_a_proven_pass_of_every_variant_on_this_build(judged: list[Judged]) -> None:
    if cell(*judged, issue=THREE).verdict is Verdict.NOT_AFFECTED:
        baseline = [one for one in judged if one.arm == BASELINE]
        conclusive = {one.variant for one in baseline if one.outcome is Outcome.PASS}
        excused = {one.variant for one in baseline if one.outcome is Outcome.NOT_APPLICABLE}
        assert conclusive
        assert conclusive | excused == {"n1", "n2", "n3"}
        assert not any(one.outcome in {Outcome.MATCH, Outcome.OTHER_FAILURE, Outcome.CRASH} for one in baseline)


@given(st.lists(JUDGED.filter(lambda one: one.outcome in INFRASTRUCTURE | {Outcome.TIMEOUT}), max_size=14))
def test_nothing_infrastructural_says_anything_about_a_build(judged: list[Judged]) -> None:
    found = cell(*judged, issue=THREE)
    assert found.verdict in {Verdict.INCONCLUSIVE, Verdict.NOT_RUN}
    assert {one.verdict for one in found.workarounds.values()} == {WorkaroundVerdict.UNVERIFIED}


@given(EVIDENCE, st.lists(UNSERVED, max_size=5))
def test_what_a_host_turned_away_changes_no_verdict(judged: list[Judged], refused: list[Judged]) -> None:
    without, beside = cell(*judged, issue=THREE), cell(*judged, *refused, issue=THREE)
    assert (beside.verdict, beside.variants, beside.workarounds) == (
        without.verdict,
        without.variants,
        without.workarounds,
    )


@given(EVIDENCE)
def test_unnecessary_is_said_only_where_the_baseline_is_not_affected(judged: list[Judged]) -> None:
    found = cell(*judged, issue=THREE)
    if found.workarounds["aot_eager"].verdict is WorkaroundVerdict.UNNECESSARY:
        assert found.verdict is Verdict.NOT_AFFECTED


@given(EVIDENCE)
def test_effective_is_said_only_where_the_baseline_is_affected(judged: list[Judged]) -> None:
    found = cell(*judged, issue=THREE)
    if found.workarounds["aot_eager"].verdict is WorkaroundVerdict.EFFECTIVE:
        assert found.verdict is Verdict.AFFECTED


@given(EVIDENCE, st.randoms(use_true_random=False))
def test_order_and_repetition_change_nothing(judged: list[Judged], random: object) -> None:
    unique = list({one.attempt: one for one in judged}.values())
    shuffled = unique + unique[: len(unique) // 2]
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis types its randoms loosely
    assert cell(*shuffled, issue=THREE) == cell(*unique, issue=THREE)


@given(EVIDENCE, st.lists(JUDGED.filter(lambda one: one.outcome in INFRASTRUCTURE), max_size=5))
def test_infrastructure_never_turns_a_conclusive_baseline_around(judged: list[Judged], noise: list[Judged]) -> None:
    before = cell(*judged, issue=THREE).verdict
    after = cell(*judged, *noise, issue=THREE).verdict
    decided = {Verdict.AFFECTED, Verdict.NOT_AFFECTED}
    allowed = {before, Verdict.INCONCLUSIVE} if before in decided else set(Verdict) - decided
    assert after in allowed
