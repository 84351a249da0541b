"""Verdicts: the printed mixture table, truth tables, and properties over arbitrary outcomes."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowngood.domain.issue import (
    BASELINE,
    CONTROL,
    Comparison,
    Device,
    Issue,
    Left,
    Observed,
    Requires,
    Signature,
    SignatureKind,
    Variant,
)
from knowngood.domain.message import Message, clauses, english, quoted
from knowngood.domain.observations import DifferentValue
from knowngood.domain.verdicts.outcome import Ending, Outcome, ProofLevel, Raised, RunRecord, Trouble, TroubleCode
from knowngood.domain.verdicts.verdict import (
    INFRASTRUCTURE,
    NOT_RUN,
    Assurance,
    Basis,
    Cell,
    Difference,
    FlakyRate,
    Judged,
    VariantFinding,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
    beside_flaky,
    derive_cell,
    is_flaky,
    is_silent,
    is_stale,
    judge,
    lowest_rates,
    mixture,
)
from tests.make import (
    HARDWARE,
    NOON,
    SIGNATURE_TEXT,
    in_english,
    make_attempt,
    make_build,
    make_issue,
    make_judged,
    make_record,
)

DOCUMENT = Path(__file__).parents[3] / "docs" / "verdicts.md"
M, P, F, T = Outcome.MATCH, Outcome.PASS, Outcome.OTHER_FAILURE, Outcome.TIMEOUT
NA, ENV = Outcome.NOT_APPLICABLE, Outcome.ENV_ERROR
BUILD = make_build()
ISSUE = make_issue()
SILENT = make_issue(signature=Signature(SignatureKind.WRONG_RESULT))


def printed_rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading of the document."""
    part = DOCUMENT.read_text().partition(f" {heading}\n")[2].partition("\n#")[0]
    return [row.split(" | ") for row in re.findall(r"^\| (.+) \|$", part, re.MULTILINE)][2:]


def test_the_first_printed_line_that_fits_is_the_rule_and_each_decides_something() -> None:
    deciding = set()
    for mixed in chain.from_iterable(combinations(Outcome, size) for size in range(len(Outcome) + 1)):
        names = {"infrastructure" if one in INFRASTRUCTURE else one.value for one in mixed} or {"nothing"}
        fitting = (
            (line, verdict)
            for line, verdict in printed_rows("The mixture table")
            if any(names >= set(either.split(" + ")) for either in line.split(", "))
        )
        line, verdict = next(fitting)
        assert mixture(mixed) == verdict, names
        deciding.add(line)
    assert deciding == {line for line, _ in printed_rows("The mixture table")}


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("Outcomes of an attempt", Outcome),
        ("Verdicts of a cell", Verdict),
        ("Verdicts of a workaround on a cell", WorkaroundVerdict),
    ],
)
def test_every_word_of_a_verdict_is_explained(heading: str, words: type[StrEnum]) -> None:
    assert sorted(row[0] for row in printed_rows(heading)) == sorted(words)


def cell(*judged: Judged, issue: Issue = ISSUE) -> Cell:
    return derive_cell(issue, BUILD, HARDWARE, judged)


def control(outcome: Outcome = Outcome.PASS, variant: str = "default") -> Judged:
    return make_judged(outcome, CONTROL, variant)


FAILS_ONCE = "1 of 1 attempt ended with the issue's own signature"


@pytest.mark.parametrize(
    ("controls", "verdict", "told", "reason"),
    [
        ([Outcome.PASS], Verdict.AFFECTED, Outcome.PASS, FAILS_ONCE),
        ([Outcome.PASS, Outcome.ENV_ERROR], Verdict.AFFECTED, Outcome.PASS, FAILS_ONCE),
        ([Outcome.HARNESS_ERROR, Outcome.PASS], Verdict.AFFECTED, Outcome.PASS, FAILS_ONCE),
        (
            [Outcome.OTHER_FAILURE],
            Verdict.INCONCLUSIVE,
            Outcome.OTHER_FAILURE,
            "control failed: because other_failure",
        ),
        ([Outcome.MATCH], Verdict.INCONCLUSIVE, Outcome.MATCH, "control failed: because match"),
        ([Outcome.CRASH], Verdict.INCONCLUSIVE, Outcome.CRASH, "control failed: because crash"),
        ([Outcome.TIMEOUT], Verdict.INCONCLUSIVE, Outcome.TIMEOUT, "control gave no answer: because timeout"),
        ([Outcome.ENV_ERROR], Verdict.INCONCLUSIVE, Outcome.ENV_ERROR, "control gave no answer: because env_error"),
        (
            [Outcome.CRASH, Outcome.PASS],
            Verdict.INCONCLUSIVE,
            Outcome.CRASH,
            "control failed: because crash",
        ),
        (
            [],
            Verdict.INCONCLUSIVE,
            None,
            "control not run: without it neither a failure nor a pass says anything",
        ),
    ],
)
def test_a_match_counts_only_beside_a_control_that_passed(
    controls: Sequence[Outcome], verdict: Verdict, told: Outcome | None, reason: str
) -> None:
    judged = [make_judged(outcome, CONTROL, n=n) for n, outcome in enumerate(controls)]
    found = cell(make_judged(Outcome.MATCH), *judged)
    assert (found.verdict, english(found.reason)) == (verdict, reason)
    assert in_english(found.variants) == in_english([VariantFinding("default", verdict, quoted(reason), 1, 1)])
    assert found.control is told
    assert found.line, "the match is kept as evidence"


def test_a_control_counts_for_its_own_variant_and_where_there_is_none_for_any() -> None:
    judged = [control(variant="n1"), control(Outcome.CRASH, "n2")]
    found = cell(*judged, *(make_judged(Outcome.MATCH, variant=v) for v in ("n1", "n2", "n3")), issue=THREE)
    assert [one.verdict for one in found.variants] == [Verdict.AFFECTED, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE]


SAID = {
    "M": Outcome.MATCH,
    "P": Outcome.PASS,
    "F": Outcome.OTHER_FAILURE,
    "C": Outcome.CRASH,
    "T": Outcome.TIMEOUT,
    "E": Outcome.ENV_ERROR,
    "N": Outcome.NOT_APPLICABLE,
    "G": Outcome.NOT_APPLICABLE,  # because no wheel can be had
}
THREE = make_issue(variants=(Variant("n1", ""), Variant("n2", ""), Variant("n3", "", arms=(CONTROL, BASELINE))))


@pytest.mark.parametrize(
    ("letters", "verdict", "reason"),
    [
        ("PPP", Verdict.NOT_AFFECTED, "with every variant (3): 1 of 1 attempt said n1"),
        ("PMP", Verdict.AFFECTED, f"with n2: {FAILS_ONCE}"),
        ("MPM", Verdict.AFFECTED, f"with n1, n3: {FAILS_ONCE}"),
        ("PMF", Verdict.AFFECTED, f"with n2: {FAILS_ONCE}"),
        ("PFE", Verdict.DIFFERENT_FAILURE, "with n2: said n2"),
        ("PEP", Verdict.INCONCLUSIVE, "with n2: said n2"),
        ("P-P", Verdict.INCONCLUSIVE, "not measured with n2 yet"),
        ("P--", Verdict.INCONCLUSIVE, "not measured with n2, n3 yet"),
        ("N-N", Verdict.INCONCLUSIVE, "not measured with n2 yet"),
        ("PNP", Verdict.NOT_AFFECTED, "with n1, n3: 1 of 1 attempt said n1"),
        ("NNN", Verdict.NOT_APPLICABLE, "said n1"),
        ("NGN", Verdict.NO_BUILD, "said n2"),
        ("---", Verdict.NOT_RUN, "not run yet"),
        ("-M-", Verdict.AFFECTED, f"with n2: {FAILS_ONCE}"),
    ],
)
def test_a_cell_is_judged_over_its_variants(letters: str, verdict: Verdict, reason: str) -> None:
    judged = [control(variant=f"n{n}") for n in (1, 2, 3)]
    judged += [
        make_judged(SAID[letter], variant=f"n{n}", reason=f"said n{n}", no_build=letter == "G")
        for n, letter in enumerate(letters, start=1)
        if letter != "-"
    ]
    found = cell(*judged, issue=THREE)
    assert (found.verdict, english(found.reason)) == (verdict, reason)
    assert [one.variant for one in found.variants] == ["n1", "n2", "n3"]


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
    assert english(cell(control(), *baseline).reason).startswith("varies by machine: ") == is_said


def test_no_wheel_is_told_apart_from_not_applicable() -> None:
    gone = make_judged(Outcome.NOT_APPLICABLE, no_build=True, reason="no wheels with a matching Python ABI tag")
    found = cell(gone)
    assert (found.verdict, english(found.reason)) == (Verdict.NO_BUILD, "no wheels with a matching Python ABI tag")
    assert found.variants == (VariantFinding("default", Verdict.NO_BUILD, found.reason),)


TOO_OLD = "driver 550.54 supports CUDA up to 12.4 and the build needs 13.0"


def unserved(arm: str = BASELINE, n: int = 9) -> Judged:
    return make_judged(Outcome.ENV_ERROR, arm, n=n, reason=TOO_OLD, unserved=True)


def test_what_no_host_could_serve_is_not_run_and_says_why() -> None:
    found = cell(unserved(CONTROL), unserved())
    assert (found.verdict, english(found.reason), found.measured_at) == (Verdict.NOT_RUN, TOO_OLD, None)
    assert found.evidence == unserved().attempt
    assert {one.verdict for one in found.workarounds.values()} == {WorkaroundVerdict.UNVERIFIED}


def test_of_several_hosts_that_could_not_serve_the_newest_is_told() -> None:
    judged = [replace(unserved(BASELINE, n), reason=quoted(f"too old {n}"), attempt=f"a-{n}") for n in (1, 2, 3)]
    judged.append(replace(unserved(CONTROL, 4), reason=quoted("too old 4")))
    found = cell(*judged[:3])
    assert (english(found.reason), found.evidence) == ("too old 3", "a-3")
    assert (english(cell(*judged).reason), cell(*judged).evidence) == ("too old 4", "a-3")
    assert cell(judged[3]).evidence == judged[3].attempt


@pytest.mark.parametrize("outcome", [one for one in Outcome if one is not Outcome.CANCELLED])
def test_any_answer_of_another_host_wins_over_one_that_could_not_serve(outcome: Outcome) -> None:
    measured = [control(), make_judged(outcome)]
    assert cell(*measured, unserved(CONTROL), unserved()) == cell(*measured)


@pytest.mark.parametrize(
    ("record", "log", "expected"),
    [
        (make_record(), "", {"outcome": P}),
        (
            make_record(M, raised=Raised("RuntimeError", SIGNATURE_TEXT, SIGNATURE_TEXT, marked="wrong_result")),
            "",
            {"outcome": M, "line": SIGNATURE_TEXT, "marked": "wrong_result"},
        ),
        (make_record(Outcome.CRASH), SIGNATURE_TEXT, {"outcome": M, "line": SIGNATURE_TEXT}),
        (
            make_record(ending=Ending.NOT_STARTED, imported={}, trouble=Trouble(TroubleCode.NO_BUILD, "no wheel")),
            "",
            {"outcome": NA, "no_build": True},
        ),
        (make_record(Outcome.ENV_ERROR), "", {"outcome": ENV}),
        (make_record(imported={"torch": "2.5.0"}), "", {"outcome": ENV}),
    ],
)
def test_an_attempt_is_judged_by_its_own_record_and_log(record: RunRecord, log: str, expected: dict[str, Any]) -> None:
    attempt = make_attempt(record=record, machine="m1")
    found = judge(attempt, ISSUE, BUILD, log)
    as_recorded = Judged(
        attempt.id,
        BASELINE,
        "default",
        found.outcome,
        found.reason,
        "",
        attempt.finished_at,
        5.0,
        machine="m1",
        observed=record.observed,
    )
    assert found == replace(as_recorded, **expected)
    assert english(found.reason)


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        pytest.param([], None, id="nothing was measured"),
        pytest.param([make_judged(ENV)], None, id="nothing was said"),
        pytest.param([make_judged(P)], ProofLevel.PROCESS, id="an older harness"),
        pytest.param([make_judged(P, proof=ProofLevel.CALL)], ProofLevel.CALL, id="this harness"),
        pytest.param(
            [make_judged(P), make_judged(P, n=2, proof=ProofLevel.CALL)],
            ProofLevel.CALL,
            id="measured anew: the better",
        ),
        pytest.param(
            [make_judged(P, variant="n1"), make_judged(P, variant="n2", proof=ProofLevel.CALL)],
            ProofLevel.PROCESS,
            id="one variant by an older one: the weaker",
        ),
    ],
)
def test_a_cell_says_how_near_the_harness_looked(attempts: list[Judged], expected: ProofLevel | None) -> None:
    issue = make_issue(variants=(Variant("n1", ""), Variant("n2", ""))) if len(attempts) == 2 else make_issue()
    assert derive_cell(issue, BUILD, HARDWARE, attempts).proof is expected


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
    assert (found.verdict, english(found.reason)) == (Verdict.NOT_APPLICABLE, trouble.sentence)


def test_an_issue_that_needs_a_gpu_does_not_apply_on_a_cpu_and_says_why() -> None:
    found = cell(issue=make_issue(requires=Requires(device=Device.CUDA)))
    assert found.verdict is Verdict.NOT_APPLICABLE
    assert "GPU" in english(found.reason)


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


@pytest.mark.parametrize(
    ("issue", "outcome", "marked", "verdict", "note"),
    [
        (SILENT, F, "", WorkaroundVerdict.INEFFECTIVE, "makes it loud: because other_failure"),
        (SILENT, M, "wrong_result", WorkaroundVerdict.INEFFECTIVE, SIGNATURE_TEXT),
        (ISSUE, F, "", WorkaroundVerdict.INEFFECTIVE, "because other_failure"),
        (ISSUE, M, "", WorkaroundVerdict.INEFFECTIVE, SIGNATURE_TEXT),
        (ISSUE, F, "wrong_result", WorkaroundVerdict.HARMFUL, "a loud failure becomes silent wrong numbers"),
    ],
)
def test_a_workaround_with_which_it_still_fails_says_how(
    issue: Issue, outcome: Outcome, marked: str, verdict: WorkaroundVerdict, note: str
) -> None:
    judged = [control(), make_judged(Outcome.MATCH), make_judged(outcome, "aot_eager", marked=marked)]
    found = cell(*judged, issue=issue).workarounds["aot_eager"]
    assert (found.verdict, english(found.note)) == (verdict, note)


@pytest.mark.parametrize(
    ("baseline", "letters", "verdict", "note"),
    [
        (M, "PM", WorkaroundVerdict.INEFFECTIVE, f"not every time: {SIGNATURE_TEXT}"),
        (M, "PMF", WorkaroundVerdict.INEFFECTIVE, "not every time: because other_failure"),
        (M, "PF", WorkaroundVerdict.UNVERIFIED, "passed and failed: because other_failure"),
        (P, "PM", WorkaroundVerdict.UNVERIFIED, f"{FAILS_ONCE.replace('1 attempt', '2 attempts')}, others passed"),
    ],
)
def test_a_workaround_that_passes_and_fails_does_not_help(
    baseline: Outcome, letters: str, verdict: WorkaroundVerdict, note: str
) -> None:
    judged = [control(), make_judged(baseline)]
    judged += [make_judged(SAID[letter], "aot_eager", n=n) for n, letter in enumerate(letters)]
    found = cell(*judged).workarounds["aot_eager"]
    assert (found.verdict, english(found.note)) == (verdict, note)


@pytest.mark.parametrize(
    ("baselines", "arms", "expected", "sides", "note"),
    [
        ("MMM", "PPP", WorkaroundVerdict.EFFECTIVE, "+++", ""),
        ("MMM", "PP-", WorkaroundVerdict.PARTIAL, "++?", "helps with n1, n2; not tried with n3"),
        ("MMM", "P--", WorkaroundVerdict.PARTIAL, "+??", "helps with n1; not tried with n2, n3"),
        ("MMM", "PM-", WorkaroundVerdict.PARTIAL, "+x?", "helps with n1; fails with n2; not tried with n3"),
        ("MMM", "PMM", WorkaroundVerdict.PARTIAL, "+xx", "helps with n1; fails with n2, n3"),
        (
            "MMM",
            "PFT",
            WorkaroundVerdict.PARTIAL,
            "+x?",
            "helps with n1; fails with n2; no answer with n3 (because timeout)",
        ),
        ("MMM", "M--", WorkaroundVerdict.INEFFECTIVE, "x??", SIGNATURE_TEXT),
        ("MMM", "TF-", WorkaroundVerdict.INEFFECTIVE, "?x?", "because other_failure"),
        ("MMM", "---", WorkaroundVerdict.UNVERIFIED, "???", "not run yet"),
        ("MMM", "T--", WorkaroundVerdict.UNVERIFIED, "???", "because timeout"),
        ("MPP", "P--", WorkaroundVerdict.EFFECTIVE, "+--", ""),
        ("MPP", "-PP", WorkaroundVerdict.UNVERIFIED, "?--", "not run yet"),
        ("MPP", "PM-", WorkaroundVerdict.HARMFUL, "+--", "the baseline passes, with it: because match"),
        ("PPP", "PM-", WorkaroundVerdict.HARMFUL, "---", "the baseline passes, with it: because match"),
        ("MTP", "P--", WorkaroundVerdict.EFFECTIVE, "+--", ""),
        ("MT-", "PMM", WorkaroundVerdict.EFFECTIVE, "+--", ""),
        ("BPP", "P--", WorkaroundVerdict.EFFECTIVE, "+--", ""),
        ("BMP", "P--", WorkaroundVerdict.PARTIAL, "+?-", "helps with n1; not tried with n2"),
        ("BMP", "-P-", WorkaroundVerdict.PARTIAL, "?+-", "helps with n2; not tried with n1"),
        ("PPP", "P--", WorkaroundVerdict.UNNECESSARY, "---", ""),
        ("PPP", "---", WorkaroundVerdict.UNVERIFIED, "---", "not run yet"),
        ("PPP", "PT-", WorkaroundVerdict.UNVERIFIED, "---", "because timeout"),
        ("NPP", "-P-", WorkaroundVerdict.UNNECESSARY, "---", ""),
        ("NPP", "TP-", WorkaroundVerdict.UNNECESSARY, "---", ""),
        ("NPP", "---", WorkaroundVerdict.UNVERIFIED, "---", "not run yet"),
        ("NNN", "PP-", WorkaroundVerdict.UNVERIFIED, "---", "the baseline here is not_applicable"),
        ("PPT", "PP-", WorkaroundVerdict.UNVERIFIED, "---", "the baseline here is inconclusive"),
        ("FPP", "PPP", WorkaroundVerdict.UNVERIFIED, "---", "the baseline here is different_failure"),
    ],
)
def test_a_workaround_counts_over_the_variants_that_fail(
    baselines: str, arms: str, expected: WorkaroundVerdict, sides: str, note: str
) -> None:
    """A letter for each variant: Match, Pass, Failed otherwise, Timeout, Not applicable, B: one matched and one passed.
    A sign for each: + it helps, x it fails, ? it has no answer.
    """
    said = {"M": [M], "P": [P], "F": [F], "T": [T], "N": [NA], "B": [M, P], "-": []}
    judged = [control(variant=v) for v in ("n1", "n2", "n3")]
    for arm, letters in ((BASELINE, baselines), ("aot_eager", arms)):
        for letter, variant in zip(letters, ("n1", "n2", "n3"), strict=True):
            judged += [make_judged(outcome, arm, variant, n) for n, outcome in enumerate(said[letter])]
    helped, failed, untried = (tuple(f"n{n}" for n in (1, 2, 3) if sides[n - 1] == sign) for sign in "+x?")
    found = cell(*judged, issue=THREE).workarounds["aot_eager"]
    runs = int(expected in {WorkaroundVerdict.EFFECTIVE, WorkaroundVerdict.PARTIAL} or bool(helped))
    said_of = WorkaroundFinding(expected, quoted(note), helped=helped, failed=failed, untried=untried, runs=runs)
    assert in_english(found) == in_english(said_of)


@pytest.mark.parametrize("letters", ["PPP", "PPE"])
def test_a_workaround_rests_on_the_least_passes_of_a_variant_that_it_helps_with(letters: str) -> None:
    judged = [one for v in ("n1", "n2") for one in (control(variant=v), make_judged(M, variant=v))]
    judged += [make_judged(P, "aot_eager", "n1", n) for n in range(5)]
    judged += [make_judged(SAID[letter], "aot_eager", "n2", n) for n, letter in enumerate(letters)]
    assert cell(*judged, issue=THREE).workarounds["aot_eager"].runs == letters.count("P")
    partly = [*judged, control(variant="n3"), make_judged(M, variant="n3")]
    assert cell(*partly, issue=THREE).workarounds["aot_eager"].runs == letters.count("P")


@pytest.mark.parametrize(
    ("failing", "tried", "applies", "note"),
    [
        (("n2",), (), False, "does not apply to this build: not tried with n2 (needs AVX)"),
        (("n1", "n2"), (), True, "not run yet"),
        (("n1",), (), True, "not run yet"),
        (("n2",), ("n1",), False, "does not apply to this build: not tried with n2 (needs AVX)"),
        (("n1", "n2"), ("n1",), True, "helps with n1; not tried with n2 (needs AVX)"),
    ],
)
def test_a_workaround_left_out_of_all_that_fails_is_none_to_try(
    failing: Sequence[str], tried: Sequence[str], applies: bool, note: str
) -> None:
    left_out = replace(THREE.variants[1], arms=("control", "baseline"), why_not="needs AVX.")
    issue = replace(THREE, variants=(THREE.variants[0], left_out, THREE.variants[2]))
    judged = [control(variant=variant.id) for variant in issue.variants]
    judged += [make_judged(M if one.id in failing else P, variant=one.id) for one in issue.variants]
    judged += [make_judged(P, "aot_eager", variant) for variant in tried]
    found = cell(*judged, issue=issue).workarounds["aot_eager"]
    assert (found.applies, english(found.note)) == (applies, note)


def test_a_workaround_left_out_of_a_variant_says_why() -> None:
    left_out = replace(THREE.variants[1], arms=("control", "baseline"), why_not="needs AVX.")
    issue = replace(THREE, variants=(THREE.variants[0], left_out, THREE.variants[2]))
    judged = [one for v in ("n1", "n2") for one in (control(variant=v), make_judged(M, variant=v))]
    judged += [control(variant="n3"), make_judged(P, variant="n3"), make_judged(P, "aot_eager", "n1")]
    found = cell(*judged, issue=issue).workarounds["aot_eager"]
    assert (found.verdict, english(found.note)) == (
        WorkaroundVerdict.PARTIAL,
        "helps with n1; not tried with n2 (needs AVX)",
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
    judged += [make_judged(SAID[letter], variant=f"n{at + 1}") for at, letter in enumerate(baselines)]
    found = cell(*judged, issue=make_issue(variants=variants))
    assert (found.verdict, english(found.reason).endswith(words)) == (verdict, True)
    assert ("as reported" in english(found.reason), found.as_reported is not None) == (bool(words), bool(words))


@pytest.mark.parametrize(
    ("letters", "verdict", "k", "n", "reason"),
    [
        ("M", Verdict.AFFECTED, 1, 1, FAILS_ONCE),
        ("MMM", Verdict.AFFECTED, 3, 3, "3 of 3 attempts ended with the issue's own signature"),
        ("ME", Verdict.AFFECTED, 1, 1, FAILS_ONCE),
        ("MFE", Verdict.AFFECTED, 1, 2, f"{FAILS_ONCE.replace('1 attempt', '2 attempts')}; 1 ended otherwise: said 1"),
        ("MFC", Verdict.AFFECTED, 1, 3, f"{FAILS_ONCE.replace('1 attempt', '3 attempts')}; 2 ended otherwise: said 2"),
        (
            "MMT",
            Verdict.AFFECTED,
            2,
            3,
            "2 of 3 attempts ended with the issue's own signature; 1 ended otherwise: said 2",
        ),
        ("MMP", Verdict.FLAKY, 2, 3, "2 of 3 attempts ended with the issue's own signature, others passed"),
        ("P", Verdict.NOT_AFFECTED, 0, 1, "1 of 1 attempt said 0"),
        ("PPE", Verdict.NOT_AFFECTED, 0, 2, "2 of 2 attempts said 1"),
        ("F", Verdict.DIFFERENT_FAILURE, 0, 1, "said 0"),
        ("FCT", Verdict.DIFFERENT_FAILURE, 0, 3, "said 1"),
        ("PFF", Verdict.INCONCLUSIVE, 0, 3, "passed and failed: said 2"),
        ("CP", Verdict.INCONCLUSIVE, 0, 2, "passed and failed: said 0"),
        ("PTE", Verdict.INCONCLUSIVE, 0, 2, "passed and failed: said 1"),
        ("TTE", Verdict.INCONCLUSIVE, 0, 2, "said 1"),
        ("EE", Verdict.INCONCLUSIVE, 0, 0, "said 1"),
        ("NN", Verdict.NOT_APPLICABLE, 0, 0, "said 1"),
        ("", Verdict.NOT_RUN, 0, 0, "not run yet"),
    ],
)
def test_a_cell_says_in_a_sentence_what_its_attempts_did(
    letters: str, verdict: Verdict, k: int, n: int, reason: str
) -> None:
    judged = [make_judged(SAID[letter], n=at, reason=f"said {at}") for at, letter in enumerate(letters)]
    found = cell(control(), *judged)
    assert (found.verdict, english(found.reason)) == (verdict, reason)
    assert in_english(found.variants) == in_english([VariantFinding("default", verdict, quoted(reason), k, n)])


@pytest.mark.parametrize(
    ("one", "other", "runs"),
    [("M", "", 1), ("MMM", "M", 3), ("M", "MMM", 3), ("PPP", "P", 1), ("P", "PP", 1), ("T", "T", 0), ("MPP", "P", 3)],
)
def test_a_verdict_rests_on_so_many_runs(one: str, other: str, runs: int) -> None:
    judged = [control(variant=v) for v in ("n1", "n2")]
    for variant, letters in (("n1", one), ("n2", other)):
        judged += [make_judged(SAID[letter], variant=variant, n=n) for n, letter in enumerate(letters)]
    assert cell(*judged, issue=make_issue(variants=(Variant("n1", ""), Variant("n2", "")))).runs == runs


@pytest.mark.parametrize(
    ("verdict", "basis", "expected"),
    [
        (Verdict.AFFECTED, None, Assurance.MEASURED),
        (Verdict.AFFECTED, Basis("python", BUILD.id, HARDWARE), Assurance.INFERRED),
        (Verdict.INCONCLUSIVE, None, Assurance.NOT_KNOWN),
        (Verdict.NOT_RUN, None, Assurance.NOT_KNOWN),
    ],
)
def test_a_verdict_is_measured_inferred_or_not_known(
    verdict: Verdict, basis: Basis | None, expected: Assurance
) -> None:
    assert Cell(ISSUE.id, BUILD.id, HARDWARE, verdict, quoted(""), basis=basis).assurance is expected


def test_a_variant_that_does_not_apply_leaves_no_workaround_without_a_verdict() -> None:
    judged = [control(variant=v) for v in ("n1", "n2", "n3")]
    judged += [make_judged(Outcome.MATCH, variant=v) for v in ("n1", "n2")]
    judged += [make_judged(Outcome.PASS, "aot_eager", v) for v in ("n1", "n2")]
    absent = [make_judged(Outcome.NOT_APPLICABLE, arm, "n3") for arm in (BASELINE, "aot_eager")]
    found = cell(*judged, *absent, issue=THREE)
    assert (found.verdict, found.workarounds["aot_eager"].verdict) == (Verdict.AFFECTED, WorkaroundVerdict.EFFECTIVE)


@pytest.mark.parametrize(
    ("left", "outcome", "not_covered"),
    [
        (Left("an argument", why_not="not measured"), P, ("an argument",)),
        (Left("an argument", why_not="not measured", applies_to=">=2.6"), P, ("an argument",)),
        (Left("an argument", why_not="not measured", applies_to=">=2.7"), P, ()),
        (Left("an argument", variant="argument"), P, ()),
        (Left("an argument", why_not="not measured"), M, ()),
    ],
)
def test_a_pass_says_what_is_left_that_no_variant_measures(
    left: Left, outcome: Outcome, not_covered: tuple[str, ...]
) -> None:
    attempts = [make_judged(P, CONTROL), make_judged(outcome), make_judged(P, "aot_eager")]
    cell = derive_cell(make_issue(left=(left,)), BUILD, HARDWARE, attempts)
    assert cell.not_covered == not_covered
    assert english(cell.reason).startswith("passes as reported; not covered: an argument; ") is bool(not_covered)
    needless = cell.workarounds["aot_eager"].verdict is WorkaroundVerdict.UNNECESSARY
    assert needless is (outcome is P and not not_covered)


def test_a_workaround_for_other_releases_does_not_apply_and_is_not_missing() -> None:
    arms = tuple(replace(arm, applies_to=">=2.8") if arm.id == "aot_eager" else arm for arm in ISSUE.arms)
    found = cell(control(), make_judged(Outcome.MATCH), issue=replace(ISSUE, arms=arms)).workarounds["aot_eager"]
    assert (found.verdict, found.applies) == (WorkaroundVerdict.UNVERIFIED, False)
    assert english(found.note) == "does not apply to this build: this workaround is for torch >=2.8"


@pytest.mark.parametrize(
    ("outcomes", "applies"),
    [
        ({"n1": [NA], "n2": [NA], "n3": [NA]}, False),
        ({"n1": [NA], "n2": [NA], "n3": []}, False),
        ({"n1": [NA, ENV], "n2": [NA], "n3": [NA, NA]}, False),
        ({"n1": [], "n2": [NA], "n3": [NA]}, True),
        ({"n1": [ENV], "n2": [NA], "n3": [NA]}, True),
        ({"n1": [Outcome.TIMEOUT], "n2": [NA], "n3": [NA]}, True),
        ({"n1": [], "n2": [], "n3": []}, True),
    ],
    ids=[
        "all said so",
        "all that it has",
        "trouble beside it says nothing",
        "one not asked",
        "one in vain",
        "one can be tried",
        "none",
    ],
)
def test_a_workaround_that_cannot_be_tried_says_so_itself_with_every_variant(
    outcomes: dict[str, list[Outcome]], applies: bool
) -> None:
    judged = [one for v in outcomes for one in (control(variant=v), make_judged(Outcome.MATCH, variant=v))]
    judged += [make_judged(one, "aot_eager", v, n) for v, said in outcomes.items() for n, one in enumerate(said)]
    found = cell(*judged, issue=THREE).workarounds["aot_eager"]
    assert (found.verdict, found.applies) == (WorkaroundVerdict.UNVERIFIED, applies)
    assert applies or english(found.note) == f"does not apply to this build: because {NA}"


def test_a_variant_of_its_own_is_one_that_a_workaround_must_be_tried_with() -> None:
    own = replace(THREE, variants=(THREE.variants[0], Variant("n2", "", arms=(CONTROL, BASELINE, "aot_eager"))))
    judged = [one for v in ("n1", "n2") for one in (control(variant=v), make_judged(M, variant=v))]
    assert cell(*judged, make_judged(NA, "aot_eager", "n1"), issue=own).workarounds["aot_eager"].applies


def test_a_build_that_cannot_be_had_says_nothing_of_a_workaround() -> None:
    gone = [make_judged(NA, arm, no_build=True) for arm in (BASELINE, "aot_eager")]
    assert cell(*gone).workarounds["aot_eager"].applies


HANG = make_issue(signature=Signature(SignatureKind.HANG, "pool"), timeout_s=60)


@pytest.mark.parametrize(
    ("letters", "control_s", "verdict", "reason"),
    [
        ("M", 5.9, Verdict.AFFECTED, FAILS_ONCE),
        ("M", 6.0, Verdict.INCONCLUSIVE, "did not end within 60 s, but the control took 6 s itself"),
        (
            "MP",
            7.4,
            Verdict.INCONCLUSIVE,
            "passed and failed: did not end within 60 s, but the control took 7 s itself",
        ),
    ],
)
def test_a_hang_beside_a_slow_control_is_only_a_timeout(
    letters: str, control_s: float, verdict: Verdict, reason: str
) -> None:
    judged = [make_judged(Outcome.PASS, CONTROL, wall_s=control_s), make_judged(Outcome.PASS, CONTROL, n=2, wall_s=1.0)]
    judged.append(make_judged(Outcome.HARNESS_ERROR, CONTROL, wall_s=9.0))  # says nothing of how long it takes
    judged += [make_judged(SAID[letter], n=n) for n, letter in enumerate(letters)]
    found = cell(*judged, issue=HANG)
    assert (found.verdict, english(found.reason)) == (verdict, reason)


def test_a_hang_without_a_control_is_no_timeout() -> None:
    found = cell(make_judged(Outcome.MATCH), issue=replace(HANG, timeout_s=10))
    assert english(found.reason) == "control not run: without it neither a failure nor a pass says anything"


def test_a_cell_holds_all_that_is_known_of_it() -> None:
    reported = make_issue(variants=(Variant("n1", ""), Variant("n2", "", is_reported=True)))
    judged = [control(variant="n1"), control(variant="n2"), make_judged(M, variant="n1", n=2)]
    judged += [make_judged(ENV, variant="n1", n=3), make_judged(P, variant="n2", n=4), make_judged(P, "aot_eager", n=5)]
    expected = Cell(
        reported.id,
        BUILD.id,
        HARDWARE,
        Verdict.AFFECTED,
        quoted(f"with n1: {FAILS_ONCE}; as reported (n2) it passes"),
        measured_at=NOON + timedelta(seconds=4),
        control=Outcome.PASS,
        attempts={"match": 1, "env_error": 1, "pass": 1},
        line=SIGNATURE_TEXT,
        variants=(
            VariantFinding("n1", Verdict.AFFECTED, quoted(FAILS_ONCE), 1, 1),
            VariantFinding("n2", Verdict.NOT_AFFECTED, quoted("1 of 1 attempt because pass"), 0, 1),
        ),
        workarounds={"aot_eager": WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, NOT_RUN, untried=("n1",))},
        superseded=3,
        voided=2,
        evidence="baseline-n1-match-2",
        reported="n2",
        silent=False,
        proof=ProofLevel.PROCESS,
    )
    assert in_english(derive_cell(reported, BUILD, HARDWARE, judged, superseded=3, voided=2)) == in_english(expected)


def test_a_cell_of_which_nothing_is_known_holds_nothing() -> None:
    assert cell() == Cell(
        ISSUE.id,
        BUILD.id,
        HARDWARE,
        Verdict.NOT_RUN,
        NOT_RUN,
        variants=(VariantFinding("default", Verdict.NOT_RUN, NOT_RUN),),
        workarounds={"aot_eager": WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, Message("baseline_not_run"))},
    )
    assert cell(control()).evidence == control().attempt


def test_what_does_not_count_is_said_of_a_cell_that_does_not_apply_too() -> None:
    on_gpu = make_issue(requires=Requires(device=Device.CUDA))
    found = derive_cell(on_gpu, BUILD, HARDWARE, [], superseded=3, voided=2)
    expected = Cell(on_gpu.id, BUILD.id, HARDWARE, Verdict.NOT_APPLICABLE, found.reason, superseded=3, voided=2)
    assert found == expected
    assert cell(issue=on_gpu) == replace(expected, superseded=0, voided=0)


@pytest.mark.parametrize(
    ("judged", "voided", "reason"),
    [
        ([], 1, "1 attempt of a worker whose results were voided"),
        ([], 2, "2 attempts of a worker whose results were voided"),
        ([], 0, "not run yet"),
        ([make_judged(ENV)], 2, "because env_error"),
    ],
)
def test_results_that_were_voided_are_the_reason_where_there_are_no_others(
    judged: list[Judged], voided: int, reason: str
) -> None:
    assert english(derive_cell(ISSUE, BUILD, HARDWARE, judged, voided=voided).reason) == reason


def saw(value: str, arm: str = BASELINE, variant: str = "default", n: int = 1) -> Judged:
    """A pass that observed this sum; with no value one that observed another thing."""
    return make_judged(P, arm, variant, n, observed={"sum": value} if value else {"other": "1"})


DIFFERS = "ran, but its values differ from the control's: sum is 5.0, the control's 1.0"


@pytest.mark.parametrize(
    ("judged", "verdict", "reason"),
    [
        pytest.param([saw("1.0", CONTROL), saw("1.0")], Verdict.NOT_AFFECTED, "1 of 1 attempt because pass", id="same"),
        pytest.param([saw("1.0", CONTROL), saw("5.0")], Verdict.INCONCLUSIVE, DIFFERS, id="a wrong gradient"),
        pytest.param(
            [saw("1.0", CONTROL), saw("nan")],
            Verdict.INCONCLUSIVE,
            DIFFERS.replace("5.0", "nan"),
            id="nan where the control has a number",
        ),
        pytest.param(
            [saw("1.0", CONTROL), saw("")],
            Verdict.INCONCLUSIVE,
            DIFFERS.replace("is 5.0", "is not reported"),
            id="a key that is missing",
        ),
        pytest.param(
            [saw("1.0", CONTROL), saw("5.0", CONTROL, n=2), saw("5.0")],
            Verdict.NOT_AFFECTED,
            "1 of 1 attempt because pass",
            id="a control that agrees, of two that do not with each other",
        ),
        pytest.param(
            [saw("1.0", CONTROL), saw("1.0"), saw("5.0", n=2)],
            Verdict.INCONCLUSIVE,
            f"passed and failed: {DIFFERS}",
            id="now the same, now not",
        ),
        pytest.param(
            [saw("1.0", CONTROL), make_judged(M), saw("5.0", n=2)],
            Verdict.AFFECTED,
            f"1 of 2 attempts ended with the issue's own signature; 1 ended otherwise: {DIFFERS}",
            id="a failure is one whatever else",
        ),
        pytest.param(
            [make_judged(Outcome.CRASH, CONTROL), saw("5.0")],
            Verdict.INCONCLUSIVE,
            "control failed: because crash",
            id="no control that passed",
        ),
    ],
)
def test_a_pass_with_other_values_than_the_controls_proves_nothing(
    judged: list[Judged], verdict: Verdict, reason: str
) -> None:
    found = cell(*judged)
    assert (found.verdict, english(found.reason)) == (verdict, reason)
    passes = sum(one.outcome is P for one in judged if one.arm == BASELINE)
    assert found.attempts.get("pass", 0) == passes, "it is counted as the pass that it was"


def test_both_values_are_kept_with_the_cell_and_the_row_says_what_is_compared() -> None:
    judged = [saw("1.0", CONTROL), saw("5.0"), saw("6.0", "aot_eager", n=2)]
    found = cell(*judged)
    assert found.differences == (
        Difference(judged[1].attempt, BASELINE, "default", (DifferentValue("sum", "5.0", "1.0"),)),
        Difference(judged[2].attempt, "aot_eager", "default", (DifferentValue("sum", "6.0", "1.0"),)),
    )
    ignoring = make_issue(observed={"sum": Observed(Comparison.IGNORE, reason="a random number")})
    assert cell(*judged, issue=ignoring).verdict is Verdict.NOT_AFFECTED
    assert not cell(*judged, issue=ignoring).differences


def test_a_variant_that_the_control_was_not_run_with_has_nothing_to_be_held_against() -> None:
    found = cell(saw("1.0", CONTROL, "n1"), saw("1.0", variant="n1"), saw("1.0", variant="n2"), issue=THREE)
    assert [one.verdict for one in found.variants[:2]] == [Verdict.NOT_AFFECTED, Verdict.INCONCLUSIVE]
    words = "ran, but there is nothing to compare its values with: the control was not run with n2"
    assert found.silent is None
    assert english(found.variants[1].reason) == words


@pytest.mark.parametrize(
    ("baseline", "value", "verdict", "note"),
    [
        (make_judged(M), "1.0", WorkaroundVerdict.EFFECTIVE, ""),
        (make_judged(M), "5.0", WorkaroundVerdict.UNVERIFIED, DIFFERS),
        (saw("1.0"), "1.0", WorkaroundVerdict.UNNECESSARY, ""),
        (saw("1.0"), "5.0", WorkaroundVerdict.UNVERIFIED, DIFFERS),
    ],
)
def test_a_workaround_that_changes_the_values_is_no_cure(
    baseline: Judged, value: str, verdict: WorkaroundVerdict, note: str
) -> None:
    found = cell(saw("1.0", CONTROL), baseline, saw(value, "aot_eager")).workarounds["aot_eager"]
    assert (found.verdict, english(found.note)) == (verdict, note)


WRONG = make_judged(Outcome.OTHER_FAILURE, marked="wrong_result")


@pytest.mark.parametrize(
    ("issue", "judged", "told"),
    [
        pytest.param(ISSUE, [make_judged(M)], False, id="an error is loud"),
        pytest.param(ISSUE, [make_judged(Outcome.CRASH)], False, id="a crash is"),
        pytest.param(ISSUE, [make_judged(M, marked="wrong_result")], True, id="wrong numbers of a loud issue"),
        pytest.param(ISSUE, [WRONG], True, id="other wrong numbers of a loud issue"),
        pytest.param(ISSUE, [make_judged(M), WRONG], True, id="now loud, now silent"),
        pytest.param(ISSUE, [saw("5.0")], True, id="values that are not the control's"),
        pytest.param(ISSUE, [saw("1.0")], None, id="nothing fails"),
        pytest.param(ISSUE, [make_judged(T)], None, id="nothing is known"),
        pytest.param(replace(SILENT, silent=True), [WRONG], True, id="the wrong result of a silent issue"),
        pytest.param(SILENT, [WRONG], False, id="a wrong result that is no wrong number"),
        pytest.param(replace(SILENT, silent=True), [make_judged(F)], False, id="an error of a silent issue"),
    ],
)
def test_a_cell_says_whether_it_is_silent_there(issue: Issue, judged: list[Judged], told: bool | None) -> None:
    found = cell(saw("1.0", CONTROL), *judged, issue=issue)
    assert found.silent is told
    assert is_silent(issue, found) is (issue.silent if told is None else told)


ONE_RUN = "one run; this issue is flaky: 2 more would say"


def test_beside_a_flaky_cell_a_single_run_cures_nothing_and_a_single_pass_is_marked() -> None:
    flaky = cell(control(), make_judged(M), make_judged(P, n=2))
    mixed = cell(control(), make_judged(F), make_judged(P, n=2))
    cured = cell(control(), make_judged(M), make_judged(P, "aot_eager"))
    assert [is_flaky(one) for one in (flaky, mixed, cured)] == [True, True, False]
    found = beside_flaky(cured, {}).workarounds["aot_eager"]
    assert (found.verdict, english(found.note), found.helped, found.untried) == (
        WorkaroundVerdict.UNVERIFIED,
        ONE_RUN,
        (),
        ("default",),
    )
    twice = cell(control(), make_judged(M), make_judged(P, "aot_eager"), make_judged(P, "aot_eager", n=2))
    assert beside_flaky(twice, {}) == twice
    passed = cell(control(), make_judged(P))
    assert beside_flaky(passed, {}) == replace(passed, reason=clauses([passed.reason, Message("one_run", n=2)]))


@pytest.mark.parametrize(
    ("k", "n", "passes"),
    [(4, 10, 6), (2, 10, 14), (9, 10, 2), (1, 10, 29), (1, 30, 30), (19, 20, 1), (4, 9, None), (10, 10, None)],
)
def test_passes_of_a_flaky_issue_are_an_answer_where_they_are_too_many_to_be_luck(
    k: int, n: int, passes: int | None
) -> None:
    """By the lowest rate of ten runs or more; of fewer none is known."""
    rates = lowest_rates([seen(3, 4), seen(k, n), seen(19, 20), seen(0, 12)])
    (rate,) = rates.values()
    assert rate.passes_needed == (passes or 1)
    for runs in range(1, 31):
        passed = cell(control(), *(make_judged(P, n=at) for at in range(runs)))
        cured = cell(control(), make_judged(M), *(make_judged(P, "aot_eager", n=at) for at in range(runs)))
        is_enough = runs >= rate.passes_needed
        claimed = beside_flaky(passed, rates)
        assert claimed.verdict is (Verdict.NOT_AFFECTED if is_enough else Verdict.INCONCLUSIVE)
        if not is_enough:
            said = f"{rate.passes_needed} passes needed: fails in {k} of {n} runs on 2.6.0; {runs} run"
            assert (english(claimed.reason), claimed.runs) == (f"with default: {said}", 0)
            assert english(beside_flaky(cured, rates).workarounds["aot_eager"].note) == said
        found = beside_flaky(cured, rates).workarounds["aot_eager"]
        assert (found.verdict is WorkaroundVerdict.EFFECTIVE) is (is_enough and runs > 1), "a cure is run twice"


def seen(k: int, n: int) -> Cell:
    return cell(control(), *(make_judged(M if at < k else P, n=at) for at in range(n)))


def test_a_failure_stays_one_beside_variants_that_passed_too_seldom() -> None:
    rates = {"b": FlakyRate(4, 10, "2.7.1")}
    variants = (
        VariantFinding("a", Verdict.AFFECTED, quoted(""), 3, 3),
        VariantFinding("b", Verdict.NOT_AFFECTED, quoted(""), 0, 3),
    )
    helps = WorkaroundFinding(WorkaroundVerdict.EFFECTIVE, helped=("a", "b"), runs=3)
    failing = replace(cell(control(), make_judged(M)), variants=variants, workarounds={"aot_eager": helps})
    claimed = beside_flaky(failing, rates)
    assert (claimed.verdict, claimed.reason) == (failing.verdict, failing.reason)
    assert [one.verdict for one in claimed.variants] == [Verdict.AFFECTED, Verdict.INCONCLUSIVE]
    found = claimed.workarounds["aot_eager"]
    assert (found.verdict, found.helped, found.untried) == (WorkaroundVerdict.PARTIAL, ("a",), ("b",))
    assert english(found.note) == "helps with a; 6 passes needed: fails in 4 of 10 runs on 2.7.1; 3 run"


def test_what_passed_on_one_machine_and_failed_on_another_is_as_little_to_be_called_cured_by_one_run() -> None:
    apart = cell(control(), make_judged(P, machine="m1"), make_judged(F, n=2, machine="m2"))
    assert english(apart.reason).startswith("varies by machine: ")
    assert is_flaky(apart)


def test_old_evidence_is_marked_stale_by_the_kind_of_build() -> None:
    found = cell(make_judged(Outcome.PASS), control())
    nightly = make_build("2.12.0.dev20260401+cu130")
    assert found.measured_at is not None
    assert not is_stale(found, BUILD, found.measured_at + timedelta(days=180))
    assert is_stale(found, BUILD, found.measured_at + timedelta(days=180, seconds=1))
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
