"""The gate, rule by rule. Properties that join rules stand in test_properties.py."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import Link, LinkKind, Packages, Requires, Severity
from knowngood.domain.issue_selectors import Watch
from knowngood.domain.message import Message, quoted
from knowngood.domain.verdicts.inference import DEVICE_RULE, PYTHON_RULE
from knowngood.domain.verdicts.verdict import NOT_RUN, Assurance, Basis, VariantFinding, Verdict, WorkaroundVerdict
from knowngood.domain.vocabulary import StatusLabel
from knowngood.environments.resolve import ResolvedBuild
from knowngood.gate.decision import Decision, MeasuredWorkaround, Reason, Ruling
from knowngood.gate.policy import Effect, Ignore, Policy, RemedyFilter, Variants
from knowngood.gate.rules import in_words
from tests.gate.given_gate import (
    BUILDS,
    FAILS,
    GPU,
    NIGHTLY,
    OLD_GPU,
    PASSES,
    TORCH_25,
    TORCH_26,
    ask,
    gpu_issue,
    make_cell,
    make_known,
    row,
)
from tests.make import HARDWARE, NOON, make_build, make_issue

TOMORROW, YESTERDAY = date(2026, 11, 22), date(2026, 11, 20)
PASS, WARN, INSUFFICIENT, BLOCK = Effect


TAKEN = "assumed: taken as Linux x86-64"


def only(ruling: Ruling) -> Reason:
    (reason,) = ruling.reasons
    return reason


def ignore(expires: date = TOMORROW, issue: str = "toy-1", **changes: Any) -> Ignore:
    return Ignore(issue, "we never take that path", "ann", expires, **changes)


# Workarounds that were not tried, and failures that the report has nothing of


@pytest.mark.parametrize(
    ("cells", "sign", "works_on", "words"),
    [
        (
            row("x", cures={"eager": "u", "clone": "i"}),
            "untried",
            "",
            "fails here: 1 of 1 attempt; workaround not verified here",
        ),
        (
            [*row("x", cures={"eager": "u", "clone": "i"}), *row(" xx", cures={"eager": "e", "clone": "e"})],
            "untried",
            "torch-2.7.1+cu126",
            "fails here: 1 of 1 attempt; workaround not verified here (works on torch 2.7.1 (CUDA 12.6))",
        ),
        (
            [*row("x", cures={"eager": "u", "clone": "i"}), *row(" xx", cures={"eager": "i", "clone": "e"})],
            "untried",
            "",
            "fails here: 1 of 1 attempt; workaround not verified here",
        ),
        (row("x", cures={"eager": "i", "clone": "h"}), "fails", "", "fails here: 1 of 1 attempt"),
        (row("x", cures={"eager": "u", "clone": "e"}), "cure", "", "fails here: 1 of 1 attempt"),
        (row("o", cures={"eager": "u", "clone": "u"}), "passes", "", "passes here: 1 of 1 attempt"),
        (row("!", cures={"eager": "u", "clone": "u"}), "different", "", "fails differently here: 1 of 1 attempt"),
    ],
    ids=[
        "not all",
        "one works elsewhere",
        "the one left works nowhere",
        "none helps",
        "one works",
        "passes",
        "differently",
    ],
)
def test_a_reason_says_whether_all_workarounds_were_tried(
    cells: list[Any], sign: str, works_on: str, words: str
) -> None:
    reason = only(ask(make_known(cells)))
    assert (reason.sign, reason.works_on, reason.why) == (sign, works_on, words)


def variants(reported: Verdict, other: Verdict = FAILS) -> dict[str, Any]:
    findings = (VariantFinding("n2", reported, quoted(""), 0, 1), VariantFinding("one_sum", other, quoted(""), 1, 1))
    return {"variants": findings, "reported": "n2"}


AS_REPORTED = row("x", **variants(PASSES))


@pytest.mark.parametrize(
    ("cells", "effect", "asked"),
    [
        (AS_REPORTED, BLOCK, PASS),
        (row("x", **variants(FAILS)), BLOCK, BLOCK),
        (row("x", **variants(Verdict.INCONCLUSIVE)), BLOCK, BLOCK),
        (row("x", **variants(Verdict.FLAKY)), BLOCK, BLOCK),
        (row("x", **{**variants(PASSES), "reported": ""}), BLOCK, BLOCK),
        (row("~", **variants(PASSES, Verdict.FLAKY)), BLOCK, BLOCK),
        (row("!", **variants(PASSES, Verdict.DIFFERENT_FAILURE)), BLOCK, BLOCK),
        (row("?", **variants(PASSES, Verdict.INCONCLUSIVE)), INSUFFICIENT, INSUFFICIENT),
        (row("x", days=300, **variants(PASSES)), BLOCK, WARN),
    ],
    ids=[
        "passes",
        "fails",
        "cannot say",
        "flaky",
        "not known which",
        "now and then",
        "differently",
        "unknown",
        "stale",
    ],
)
def test_a_policy_may_ask_for_what_the_report_ran_alone(cells: list[Any], effect: Effect, asked: Effect) -> None:
    known = make_known(cells)
    assert only(ask(known)).effect is effect
    assert only(ask(known, variants=Variants.REPORTED)).effect is asked


def test_what_passes_as_reported_is_said_first_and_who_lets_it_pass() -> None:
    reason = only(ask(make_known(AS_REPORTED), variants=Variants.REPORTED))
    assert reason.why == (
        "passes as reported, fails here in a variant: 1 of 1 attempt; the policy asks for what the report ran alone"
    )
    assert reason.sign == "variant"


# Which verdict does what


@pytest.mark.parametrize(
    ("sign", "effect", "decision"),
    [
        ("o", PASS, Decision.PASS),
        ("x", BLOCK, Decision.BLOCK),
        ("~", BLOCK, Decision.BLOCK),
        ("!", BLOCK, Decision.BLOCK),
        ("?", INSUFFICIENT, Decision.INSUFFICIENT),
        ("0", INSUFFICIENT, Decision.INSUFFICIENT),
        (" ", INSUFFICIENT, Decision.INSUFFICIENT),
        ("-", PASS, Decision.INSUFFICIENT),
    ],
    ids=["passes", "fails", "flaky", "differently", "cannot say", "no build", "not run", "does not apply"],
)
def test_without_a_policy_a_failure_blocks_and_what_is_unknown_is_not_enough(
    sign: str, effect: Effect, decision: Decision
) -> None:
    ruling = ask(make_known([*row(sign), *row(" o")]))
    assert (only(ruling).effect, ruling.decision) == (effect, decision)


@pytest.mark.parametrize("effect", Effect)
@pytest.mark.parametrize(("sign", "rule"), [("x", "affected"), ("~", "flaky"), ("!", "different_failure")])
def test_each_kind_of_failure_does_what_the_policy_says(sign: str, rule: str, effect: Effect) -> None:
    policy: dict[str, Any] = {rule: effect}
    assert only(ask(make_known(row(sign)), **policy)).effect is effect


@pytest.mark.parametrize("effect", Effect)
@pytest.mark.parametrize("sign", ["?", "0", " "])
def test_each_kind_of_unknown_does_what_the_policy_says(sign: str, effect: Effect) -> None:
    known = make_known([*row(sign), *row("o", "toy-2")], make_issue(), make_issue("toy-2"))
    ruling = ask(known, unknown=effect)
    decided = {PASS: Decision.PASS, WARN: Decision.PASS, INSUFFICIENT: Decision.INSUFFICIENT, BLOCK: Decision.BLOCK}
    found = {reason.issue: reason.effect for reason in ruling.reasons}
    assert (found["toy-1"], ruling.decision) == (effect, decided[effect])


def test_one_block_outweighs_what_is_insufficient_and_what_passes() -> None:
    issues = [make_issue(f"toy-{n}") for n in (1, 2, 3)]
    ruling = ask(make_known([*row("?"), *row("x", "toy-2"), *row("o", "toy-3")], *issues))
    assert ruling.decision is Decision.BLOCK
    assert [(one.issue, one.effect) for one in ruling.reasons] == [
        ("toy-2", BLOCK),
        ("toy-1", INSUFFICIENT),
        ("toy-3", PASS),
    ]
    assert dict(ruling.counts) == {PASS: 1, WARN: 0, INSUFFICIENT: 1, BLOCK: 1}


def test_reasons_of_one_effect_come_by_severity_then_by_id() -> None:
    severities = {"toy-1": Severity.LOW, "toy-2": Severity.CRITICAL, "toy-3": Severity.LOW}
    issues = [make_issue(id_, severity=severity) for id_, severity in severities.items()]
    ruling = ask(make_known([cell for id_ in severities for cell in row("x", id_)], *issues))
    assert [one.issue for one in ruling.reasons] == ["toy-2", "toy-1", "toy-3"]


@pytest.mark.parametrize("effect", [PASS, WARN])
@pytest.mark.parametrize("sign", ["?", "0", " ", "-"])
def test_without_any_answer_nothing_passes_whatever_unknowns_may_do(sign: str, effect: Effect) -> None:
    ruling = ask(make_known([*row(sign), *row(" o")]), unknown=effect)
    assert ruling.decision is Decision.INSUFFICIENT
    assert ruling.why == "nothing that is watched has an answer on torch 2.5.1 (CUDA 12.4)"


# What is watched


def test_a_watch_list_that_names_nothing_means_nothing() -> None:
    with pytest.raises(BadRequest, match="the watch list team-a names nothing"):
        ask(make_known(row("o")), watch=Watch(lists=("team-a",)))


@pytest.mark.parametrize(
    ("signs", "base", "told", "count"),
    [
        ("x", "", [], "1 known issue fails here, 0 are not known"),
        ("o", "", [], "0 known issues fail here, 0 are not known"),
        ("?", "", [], "0 known issues fail here, 1 are not known"),
        ("xx", TORCH_26.id, [], "1 known issue fails here, 0 are not known"),
        ("xo", TORCH_26.id, [WARN], "1 known issue fails here, 0 are not known"),
        ("!x", TORCH_26.id, [WARN], "1 known issue fails here, 0 are not known"),
        ("x", TORCH_26.id, [], "1 known issue fails here, 0 are not known"),
    ],
    ids=["fails", "passes", "not known", "not new", "new", "fails in a new way", "nobody can say whether new"],
)
def test_where_nothing_is_watched_only_what_is_new_since_the_base_warns(
    signs: str, base: str, told: list[Effect], count: str
) -> None:
    ruling = ask(make_known(row(signs)), watch=Watch(), base=base, affected=BLOCK)
    assert (ruling.decision, [one.effect for one in ruling.reasons]) == (Decision.PASS, told)
    assert ruling.why.startswith(
        "nothing known keeps torch 2.5.1 (CUDA 12.4) from being installed and run; nothing is watch"
    )
    assert ruling.notes[0].startswith(count)


def test_where_nothing_is_watched_facts_block_and_an_untested_build_stays_insufficient() -> None:
    fact = Message("no_wheel", said="the index has none")
    refused = ResolvedBuild(TORCH_25.id, "torch 2.5.1", refusals=(fact,))
    assert ask(make_known(row("x")), resolved=refused, watch=Watch()).decision is Decision.BLOCK
    untested = ask(make_known(row("x")), resolved=UNTESTED, watch=Watch())
    assert (untested.decision, untested.reasons) == (Decision.INSUFFICIENT, ())


def test_what_is_watched_and_holds_no_issue_is_insufficient() -> None:
    ruling = ask(make_known(row("o")), watch=Watch(packages=("einops",)))
    assert (ruling.decision, ruling.reasons) == (Decision.INSUFFICIENT, ())
    assert ruling.why == "what is watched names no issue of this catalogue"
    assert "no issue here needs the package einops" in ruling.notes


# Builds that nobody tested


UNTESTED = ResolvedBuild(
    None, "torch 2.6.5", notes=(quoted("no torch 2.6.5 was tested"),), nearest=("torch-2.6.0+cu124", "torch-2.7.1")
)


def test_a_build_that_nobody_tested_is_insufficient_and_never_its_neighbour() -> None:
    ruling = ask(make_known(row("oooo")), resolved=UNTESTED)
    assert ruling.decision is Decision.INSUFFICIENT
    assert ruling.why == "not tested: torch 2.6.5; nearest tested builds are torch 2.6.0 (CUDA 12.4), torch 2.7.1"
    assert (only(ruling).verdict, only(ruling).effect, only(ruling).build) == (Verdict.NOT_RUN, INSUFFICIENT, "")
    assert only(ruling).evidence_url == "/issues/toy-1"
    assert ruling.build is None
    assert ruling.notes == ("no torch 2.6.5 was tested",)


@pytest.mark.parametrize(
    ("unknown", "decision"),
    [
        (PASS, Decision.INSUFFICIENT),
        (WARN, Decision.INSUFFICIENT),
        (INSUFFICIENT, Decision.INSUFFICIENT),
        (BLOCK, Decision.BLOCK),
    ],
)
def test_an_untested_build_never_passes_whatever_unknowns_may_do(unknown: Effect, decision: Decision) -> None:
    ruling = ask(make_known(row("oooo")), resolved=UNTESTED, unknown=unknown)
    assert (only(ruling).effect, ruling.decision) == (unknown, decision)
    near = "not tested: torch 2.6.5; nearest tested builds are torch 2.6.0 (CUDA 12.4), torch 2.7.1"
    assert ruling.why == (f"1 of 1 watched issue blocks it: toy-1; {near}" if unknown is BLOCK else near)


def test_an_untested_build_with_none_near_says_so() -> None:
    ruling = ask(make_known(row("o")), resolved=ResolvedBuild(None, "torch 1.0"))
    assert ruling.why == "not tested: torch 1.0; no tested build is near"


def test_a_build_outside_the_catalogue_is_untested() -> None:
    assert ask(make_known(row("o")), make_build("2.4.0+cu121")).build is None


def test_an_assumed_build_is_noted_and_a_policy_may_refuse_it() -> None:
    assumed = ResolvedBuild(
        TORCH_25.id, "torch 2.5.1", is_assumed=True, notes=(quoted("the wheel may be any of three"),)
    )
    ruling = ask(make_known(row("o")), resolved=assumed)
    assert ruling.decision is Decision.PASS
    assert ruling.notes[0].startswith("assumed: the wheel may be any of three; taken as Linux x86-64; every measured ")
    bare = ResolvedBuild(TORCH_25.id, "torch 2.5.1", is_assumed=True)
    assert ask(make_known(row("o")), resolved=bare).notes[0].startswith("assumed: torch 2.5.1 (CUDA 12.4); taken as")
    blind = ask(make_known(row("?")), resolved=bare, refuse_assumed=True)
    assert blind.why == (
        "the build torch 2.5.1 (CUDA 12.4) is assumed, and the policy refuses assumed builds; "
        "nothing that is watched has an answer on torch 2.5.1 (CUDA 12.4)"
    )
    refused = ask(make_known(row("o")), resolved=assumed, refuse_assumed=True)
    assert refused.decision is Decision.INSUFFICIENT
    assert refused.why == "the build torch 2.5.1 (CUDA 12.4) is assumed, and the policy refuses assumed builds"
    assert ask(make_known(row("x")), resolved=assumed, refuse_assumed=True).decision is Decision.BLOCK


# Hardware


@pytest.mark.parametrize(
    ("cpu", "gpu", "old", "hardware", "decision", "classes"),
    [
        ("o", "o", "", (), Decision.PASS, {GPU}),
        ("o", "x", "", (), Decision.BLOCK, {GPU}),
        ("o", "o", "x", (), Decision.BLOCK, {GPU, OLD_GPU}),
        ("o", "o", "x", (GPU,), Decision.PASS, {GPU}),
        ("o", "o", " x", (), Decision.INSUFFICIENT, {GPU, OLD_GPU}),
        ("o", "o", " o", (GPU, OLD_GPU), Decision.INSUFFICIENT, {GPU, OLD_GPU}),
        ("o", "o", "", (GPU, OLD_GPU), Decision.INSUFFICIENT, {GPU, OLD_GPU}),
        ("o", "o", "?", (), Decision.INSUFFICIENT, {GPU, OLD_GPU}),
        ("o", "o", "", (HARDWARE,), Decision.INSUFFICIENT, {HARDWARE}),
    ],
    ids=[
        "passes where it applies",
        "fails where it applies",
        "the worst class wins",
        "a named class alone counts",
        "a hole counts where other builds have an answer",
        "a named class without an answer counts",
        "a named class counts though nobody measured there",
        "tried in vain counts",
        "on no class that counts can it exist",
    ],
)
def test_an_issue_counts_on_each_class_that_is_asked_for(
    cpu: str, gpu: str, old: str, hardware: tuple[str, ...], decision: Decision, classes: set[str]
) -> None:
    cells = [*row(cpu, "other-1"), *row(gpu, "gpu-1", GPU), *row(old, "gpu-1", OLD_GPU)]
    known = make_known(cells, make_issue("other-1"), gpu_issue())
    ruling = ask(known, watch=Watch(issues=("gpu-1",)), hardware=hardware)
    assert (ruling.decision, {one.hardware for one in ruling.reasons}) == (decision, classes)


def test_a_class_that_never_measured_the_issue_is_not_asked_for_unless_it_is_named() -> None:
    known = make_known([*row("o", "gpu-1", GPU), *row("o", "gpu-2", OLD_GPU)], gpu_issue(), gpu_issue("gpu-2"))
    watch = Watch(issues=("gpu-1",))
    assert ask(known, watch=watch).decision is Decision.PASS
    assert ask(known, watch=watch, hardware=(OLD_GPU,)).decision is Decision.INSUFFICIENT


def test_an_issue_that_was_measured_nowhere_is_asked_for_wherever_it_applies() -> None:
    elsewhere = [*row("o", "gpu-2", GPU), *row("o", "gpu-2", OLD_GPU), *row("o", "toy-1")]
    ruling = ask(make_known(elsewhere, gpu_issue(), gpu_issue("gpu-2"), make_issue()), watch=Watch(issues=("gpu-1",)))
    assert [(one.hardware, one.effect) for one in ruling.reasons] == [(OLD_GPU, INSUFFICIENT), (GPU, INSUFFICIENT)]


def test_a_class_whose_hosts_turned_everything_away_has_not_measured_it() -> None:
    turned_away = make_cell(Verdict.NOT_RUN, "gpu-1", TORCH_26, hardware=OLD_GPU, reason="the driver is too old")
    ruling = ask(make_known([*row("o", "gpu-1", GPU), turned_away], gpu_issue()))
    assert (ruling.decision, only(ruling).hardware) == (Decision.PASS, GPU)


def test_an_answer_where_it_cannot_exist_and_one_where_it_can_are_one_answer() -> None:
    ruling = ask(make_known([*row("-", "gpu-1", OLD_GPU), *row("o", "gpu-1", GPU)], gpu_issue()))
    assert (ruling.decision, only(ruling).hardware) == (Decision.PASS, GPU)


def test_an_issue_that_exists_on_none_of_the_classes_is_told_once() -> None:
    cells = [*row("o"), *row("-", "gpu-1"), *row("-", "gpu-1", OLD_GPU)]
    ruling = ask(make_known(cells, make_issue(), gpu_issue()), hardware=(HARDWARE, OLD_GPU))
    assert [one.hardware for one in ruling.reasons if one.issue == "gpu-1"] == [HARDWARE]


def test_it_says_that_every_measured_class_counts_where_none_was_named() -> None:
    told = "every measured hardware, the worst counts (CPU)"
    assert ask(make_known(row("o"))).notes == (f"{TAKEN}; {told}",)
    assert ask(make_known(row("o")), hardware=(HARDWARE,)).notes == (TAKEN,)


def test_a_platform_that_is_stated_is_not_taken_for_granted_and_a_policy_may_ask_for_one() -> None:
    here = ResolvedBuild(TORCH_25.id, "torch 2.5.1", platforms={"linux-x86_64": "Linux-6.1-x86_64"})
    assert TAKEN not in str(ask(make_known(row("o")), resolved=here).notes)
    assert ask(make_known(row("o")), resolved=here, refuse_unstated=True).decision is Decision.PASS
    refused = ask(make_known(row("o")), refuse_unstated=True)
    assert (refused.decision, "states no platform" in refused.why) == (Decision.INSUFFICIENT, True)


def test_with_nothing_measured_at_all_the_answer_is_still_an_answer() -> None:
    ruling = ask(make_known([]))
    assert (ruling.decision, only(ruling).hardware) == (Decision.INSUFFICIENT, "")
    assert only(ruling).evidence_url == "/cells/toy-1/torch-2.5.1%2Bcu124"
    assert only(ruling).why == "not run: nothing was measured here yet"
    assert ruling.notes[-1] == f"{TAKEN}; every measured hardware, the worst counts (none yet)"


def test_a_slip_in_a_hardware_class_is_told_with_the_classes_that_were_measured() -> None:
    with pytest.raises(BadRequest, match=r'^"gpu" is no hardware class; .* \(measured: cpu-x86_64, cuda-sm_90\)$'):
        ask(make_known([*row("o"), *row("o", hardware=GPU)]), hardware=("gpu",))
    with pytest.raises(BadRequest, match=r"\(measured: none yet\)$"):
        ask(make_known([]), hardware=("gpu",))


@pytest.mark.parametrize("text", ["", "cpu", "cuda", "cuda-sm_", "cuda-sm_x", "CPU-X86_64", "cuda-sm_90\n", "x" * 9999])
def test_what_is_no_hardware_class_is_a_slip(text: str) -> None:
    with pytest.raises(BadRequest, match="is no hardware class; write for example cpu-x86_64"):
        ask(make_known(row("o")), hardware=(text,))


# Severity, silence, remedies


@pytest.mark.parametrize(
    ("severity", "silent", "always", "sign", "effect"),
    [
        (Severity.LOW, False, True, "x", WARN),
        (Severity.HIGH, False, True, "x", BLOCK),
        (Severity.CRITICAL, False, True, "x", BLOCK),
        (Severity.LOW, True, True, "x", BLOCK),
        (Severity.LOW, True, True, "~", BLOCK),
        (Severity.LOW, True, True, "!", WARN),
        (Severity.LOW, True, False, "x", WARN),
        (Severity.LOW, False, True, "?", INSUFFICIENT),
    ],
    ids=[
        "below the least severity",
        "of the least severity",
        "above it",
        "silent and below",
        "silent, flaky and below",
        "another failure is not silent",
        "silence may be no reason",
        "severity excuses no unknown",
    ],
)
def test_what_is_less_severe_only_warns(
    severity: Severity, silent: bool, always: bool, sign: str, effect: Effect
) -> None:
    known = make_known(row(sign), make_issue(severity=severity, silent=silent))
    assert only(ask(known, minimum=Severity.HIGH, silent_always=always)).effect is effect


@pytest.mark.parametrize(("effect", "eased"), [(BLOCK, WARN), (INSUFFICIENT, WARN), (PASS, PASS)])
def test_what_is_eased_is_a_warning_at_most(effect: Effect, eased: Effect) -> None:
    known = make_known(row("x"), make_issue(severity=Severity.LOW))
    assert only(ask(known, affected=effect, minimum=Severity.HIGH)).effect is eased


@pytest.mark.parametrize(
    ("cells", "remedy", "effect"),
    [
        (row("x"), RemedyFilter.WITH_REMEDY, WARN),
        (row("xo"), RemedyFilter.WITH_REMEDY, BLOCK),
        (row("xx"), RemedyFilter.WITH_REMEDY, WARN),
        (row("x", cures={"eager": "e"}), RemedyFilter.WITH_REMEDY, BLOCK),
        (row("x", cures={"eager": "i"}), RemedyFilter.WITH_REMEDY, WARN),
        (row("x"), RemedyFilter.WITHOUT_REMEDY, BLOCK),
        (row("xo"), RemedyFilter.WITHOUT_REMEDY, WARN),
        (row("x", cures={"eager": "e"}), RemedyFilter.WITHOUT_REMEDY, WARN),
        (row("xo", cures={"eager": "e"}), RemedyFilter.ANY, BLOCK),
        (row("x"), RemedyFilter.ANY, BLOCK),
    ],
)
def test_a_policy_may_block_only_what_can_be_helped_or_only_what_cannot(
    cells: list[Any], remedy: RemedyFilter, effect: Effect
) -> None:
    assert only(ask(make_known(cells), remedy=remedy)).effect is effect


@pytest.mark.parametrize(
    ("signs", "asked", "first_fixed", "fixed_in"),
    [
        ("xo", 0, "torch-2.6.0+cu124", "(2.5.1, 2.6.0]"),
        ("x o", 0, "torch-2.7.1+cu126", "(2.5.1, 2.7.1] (2.6.0 not run)"),
        ("xxo", 0, "torch-2.7.1+cu126", "(2.6.0, 2.7.1]"),
        ("oxo", 1, "torch-2.7.1+cu126", "(2.6.0, 2.7.1]"),
        ("xx", 0, "", ""),
        ("ox", 1, "", ""),
        ("x  o", 0, "", ""),
        ("x!", 0, "", ""),
    ],
    ids=[
        "the next release",
        "one between was not measured",
        "one between fails too",
        "an older pass is no fix",
        "still failing",
        "only older ones pass",
        "a nightly is no release",
        "failing differently is no fix",
    ],
)
def test_the_first_fixed_release_is_the_oldest_later_one_that_passes(
    signs: str, asked: int, first_fixed: str, fixed_in: str
) -> None:
    reason = only(ask(make_known(row(signs)), BUILDS[asked]))
    assert (reason.first_fixed, reason.fixed_in) == (first_fixed, fixed_in)


def test_a_release_whose_pythons_contradict_each_other_is_no_fix_and_the_own_python_is_named() -> None:
    old = make_build("2.5.1+cu124", python="3.12")
    new = [make_build(torch, python=python) for torch in ("2.6.0+cu124", "2.7.1+cu126") for python in ("3.11", "3.12")]
    cells = [make_cell(FAILS, build=old), make_cell(FAILS, build=new[0])]
    cells += [make_cell(PASSES, build=build) for build in new[1:]]
    reason = only(ask(make_known(cells, builds=[old, *new]), old))
    assert (reason.first_fixed, reason.fixed_in) == (
        "torch-2.7.1+cu126~py312",
        "(2.5.1, 2.7.1] (2.6.0 differs by Python)",
    )


def test_a_pass_names_no_fix_and_no_cure() -> None:
    reason = only(ask(make_known(row("oo", cures={"eager": "n"}))))
    assert (reason.first_fixed, reason.workarounds) == ("", ())


def test_cures_that_help_come_first_with_their_snippet_and_the_others_are_named() -> None:
    reason = only(ask(make_known(row("x", cures={"clone": "i", "eager": "e"}))))
    assert [(one.id, one.verdict, bool(one.snippet), bool(one.trade_off)) for one in reason.workarounds] == [
        ("eager", "effective", True, True),
        ("clone", "ineffective", False, False),
    ]


# Comparing with a base build


@pytest.mark.parametrize(
    ("base", "here", "effect", "is_new"),
    [
        ("x", "x", WARN, False),
        ("~", "x", WARN, False),
        ("x", "~", WARN, False),
        ("o", "x", BLOCK, True),
        ("!", "x", BLOCK, True),
        ("x", "!", BLOCK, True),
        ("!", "!", WARN, False),
        ("-", "x", BLOCK, True),
        ("?", "x", WARN, None),
        (" ", "x", WARN, None),
        ("0", "x", WARN, None),
        ("x", "o", PASS, None),
        ("x", "?", INSUFFICIENT, None),
    ],
)
def test_with_only_new_what_failed_on_the_base_build_already_only_warns(
    base: str, here: str, effect: Effect, is_new: bool | None
) -> None:
    reason = only(ask(make_known(row(base + here)), TORCH_26, only_new=True, base=TORCH_25.id))
    assert (reason.effect, reason.is_new) == (effect, is_new)


@pytest.mark.parametrize("effect", list(Effect))
def test_a_policy_says_what_is_done_where_nothing_is_known_on_the_base_build(effect: Effect) -> None:
    asked: dict[str, Any] = {"only_new": True, "base": TORCH_25.id, "unknown_on_base": effect}
    unknown = only(ask(make_known(row(" x")), TORCH_26, **asked))
    assert unknown.effect is effect
    assert unknown.why.endswith(
        "nobody can say whether it is new: nothing is known of it on the base build torch 2.5.1 (CUDA 12.4)"
    )
    assert only(ask(make_known(row("ox")), TORCH_26, **asked)).effect is BLOCK
    mild = only(ask(make_known(row(" x")), TORCH_26, affected=WARN, **asked)).effect
    assert mild is (Effect.PASS if effect is Effect.PASS else WARN)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (("ox", " x", " x"), "1 new since torch 2.5.1 (CUDA 12.4), and of 2 nobody can say whether they are"),
        (("xx",), "0 new since torch 2.5.1 (CUDA 12.4), and of 0 nobody can say whether they are"),
        (("oo",), ""),
    ],
)
def test_the_first_line_says_how_many_are_new_and_of_how_many_nobody_knows(rows: tuple[str, ...], says: str) -> None:
    cells = [cell for at, signs in enumerate(rows) for cell in row(signs, f"toy-{at}")]
    known = make_known(cells, *(make_issue(f"toy-{at}") for at in range(len(rows))))
    ruling = ask(known, TORCH_26, only_new=True, base=TORCH_25.id)
    assert says in ruling.why
    assert ("nobody can say" in ruling.why) is bool(says)


def test_a_base_build_that_is_not_known_makes_everything_new_with_a_note() -> None:
    ruling = ask(make_known(row("x")), only_new=True, base="torch-2.4.0")
    assert ruling.decision is Decision.BLOCK
    assert "the base build torch 2.4.0 is not known here, so every failing issue counts as new" in ruling.notes


def test_a_base_build_may_leave_open_what_the_default_index_settles() -> None:
    ruling = ask(make_known(row("xx")), TORCH_26, only_new=True, base="torch-2.5.1")
    assert (only(ruling).effect, only(ruling).is_new) == (WARN, False)
    assert any(note.startswith("the base build is assumed: ") for note in ruling.notes)


def test_a_base_build_is_compared_with_and_changes_nothing_unless_only_new_is_asked() -> None:
    reason = only(ask(make_known(row("xx")), TORCH_26, base=TORCH_25.id))
    assert (reason.effect, reason.is_new) == (BLOCK, False)


@pytest.mark.parametrize(
    ("base", "words"), [("", "names? a base|none is named"), ("torch", 'base: "torch" names no build')]
)
def test_only_new_without_a_base_build_means_nothing(base: str, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        ask(make_known(row("x")), only_new=True, base=base)


# Workarounds in place


@pytest.mark.parametrize(
    ("sign", "cures", "declared", "effect", "words"),
    [
        ("x", {"eager": "e"}, ("eager",), PASS, "the declared workaround eager helps here"),
        ("x", {"eager": "i"}, ("eager",), BLOCK, "the declared workaround eager does not help here: so it was seen"),
        ("x", {"eager": "h"}, ("eager",), BLOCK, "the declared workaround eager does harm here: so it was seen"),
        ("x", {"eager": "u"}, ("eager",), BLOCK, "the declared workaround eager is not verified here"),
        ("x", {}, ("eager",), BLOCK, "the declared workaround eager is not verified here: not run yet"),
        ("x", {}, ("egaer",), BLOCK, "no workaround of it is called egaer; known: eager, clone"),
        ("x", {"eager": "e", "clone": "i"}, ("clone", "eager"), PASS, "clone does not help here"),
        ("x", {"eager": "e", "clone": "h"}, ("clone", "eager"), WARN, "clone does harm here"),
        ("x", {"eager": "e"}, (), BLOCK, "1 of 1 attempt"),
        ("~", {"eager": "u"}, ("eager",), BLOCK, "is not verified here"),
        ("o", {"eager": "n"}, ("eager",), PASS, "the declared workaround eager is not needed here"),
        ("o", {"eager": "h"}, ("eager",), WARN, "the declared workaround eager does harm here"),
        ("?", {"eager": "u"}, ("eager",), INSUFFICIENT, "is not verified here"),
        ("?", {"eager": "e"}, ("eager",), INSUFFICIENT, "the declared workaround eager helps here"),
    ],
)
def test_a_declared_workaround_lets_pass_only_what_it_was_seen_to_cure_here(
    sign: str, cures: dict[str, str], declared: tuple[str, ...], effect: Effect, words: str
) -> None:
    reason = only(ask(make_known(row(sign, cures=cures)), applied={"toy-1": declared}))
    assert (reason.effect, reason.applied) == (effect, declared)
    assert words in reason.why


def test_a_workaround_counts_on_the_class_where_it_helps_and_on_no_other() -> None:
    cells = [*row("x", "gpu-1", GPU, cures={"aot_eager": "e"}), *row("x", "gpu-1", OLD_GPU, cures={"aot_eager": "i"})]
    ruling = ask(make_known(cells, gpu_issue()), applied={"gpu-1": ("aot_eager",)})
    assert {one.hardware: one.effect for one in ruling.reasons} == {GPU: PASS, OLD_GPU: BLOCK}


def test_workarounds_of_an_issue_that_nobody_knows_are_noted_the_first_three_with_the_nearest() -> None:
    names = [f"toy{n}" for n in range(1, 5)]
    ruling = ask(make_known(row("o")), applied=dict.fromkeys(names, ("eager",)), hardware=(HARDWARE,))
    said = 'applied workarounds: no issue is called "{}" here{}'
    near = "; nearest: toy-1"
    assert ruling.notes == (*(said.format(name, near if name != "toy4" else "") for name in names), TAKEN)


# Age


@pytest.mark.parametrize(
    ("build", "sign", "days", "stale", "effect", "is_stale"),
    [
        (TORCH_25, "o", 180, WARN, PASS, False),
        (TORCH_25, "o", 181, WARN, WARN, True),
        (TORCH_25, "o", 181, PASS, PASS, True),
        (TORCH_25, "o", 181, INSUFFICIENT, INSUFFICIENT, True),
        (TORCH_25, "o", 181, BLOCK, BLOCK, True),
        (TORCH_25, "x", 181, WARN, BLOCK, True),
        (TORCH_25, "?", 181, BLOCK, INSUFFICIENT, True),
        (NIGHTLY, "o", 7, WARN, PASS, False),
        (NIGHTLY, "o", 8, WARN, WARN, True),
        (TORCH_25, "o", -3, WARN, PASS, False),
    ],
    ids=[
        "a release within 180 days",
        "a release after them",
        "stale may pass",
        "stale may be insufficient",
        "stale may block",
        "a stale failure is still one",
        "an unknown does not age",
        "a nightly within 7 days",
        "a nightly after them",
        "measured by a clock ahead of ours",
    ],
)
def test_old_evidence_weighs_at_least_what_the_policy_says(
    build: Any, sign: str, days: int, stale: Effect, effect: Effect, is_stale: bool
) -> None:
    known = make_known(row(sign * 4, days=days))
    reason = only(ask(known, build, stale=stale))
    assert (reason.effect, reason.stale, reason.age_days) == (effect, is_stale, max(0, days))


def test_the_days_are_the_policys_and_the_sentence_names_them() -> None:
    reason = only(ask(make_known(row("o", days=12)), release_days=10))
    assert reason.why == "passes here: 1 of 1 attempt; measured 12 days ago, and after 10 it is stale"


def test_what_a_workaround_lets_pass_ages_all_the_same() -> None:
    known = make_known(row("x", days=200, cures={"eager": "e"}))
    assert only(ask(known, applied={"toy-1": ("eager",)})).effect is WARN


# Ignores


@pytest.mark.parametrize(
    ("sign", "expires", "effect", "words"),
    [
        ("x", TOMORROW, PASS, "ignored until 2026-11-22 by ann: we never take that path"),
        ("x", NOON.date(), PASS, "ignored until 2026-11-21 by ann"),
        ("x", YESTERDAY, BLOCK, "the ignore of ann ran out on 2026-11-20"),
        ("?", TOMORROW, PASS, "ignored until 2026-11-22 by ann"),
        ("?", YESTERDAY, INSUFFICIENT, "the ignore of ann ran out on 2026-11-20"),
        ("o", TOMORROW, PASS, "the ignore of ann is not needed here"),
        ("o", YESTERDAY, PASS, "the ignore of ann ran out on 2026-11-20"),
    ],
)
def test_an_ignore_lets_pass_until_its_last_day_is_over(sign: str, expires: date, effect: Effect, words: str) -> None:
    reason = only(ask(make_known(row(sign)), ignores=(ignore(expires),)))
    assert reason.effect is effect
    assert words in reason.why
    assert bool(reason.ignored) is (effect is PASS and sign != "o")


@pytest.mark.parametrize(
    "written", ["toy-1", "TOY-1", "pytorch/pytorch#1", "https://github.com/pytorch/pytorch/issues/1"]
)
def test_an_issue_may_be_ignored_by_any_name_it_has(written: str) -> None:
    assert ask(make_known(row("x")), ignores=(ignore(issue=written),)).decision is Decision.PASS


def test_of_two_ignores_the_longer_one_counts() -> None:
    assert only(ask(make_known(row("x")), ignores=(ignore(YESTERDAY), ignore()))).effect is PASS


def test_an_ignore_of_nothing_that_is_known_is_noted() -> None:
    ruling = ask(make_known(row("x")), ignores=(ignore(issue="other-9"),), hardware=(HARDWARE,))
    assert ruling.decision is Decision.BLOCK
    assert ruling.notes == ('ignore: no issue is called "other-9" here', TAKEN)


def test_an_ignored_issue_is_an_answer_where_it_was_measured_and_none_where_it_was_not() -> None:
    assert ask(make_known(row("x")), ignores=(ignore(),)).decision is Decision.PASS
    assert ask(make_known(row("?")), ignores=(ignore(),)).decision is Decision.INSUFFICIENT


def test_an_ignore_holds_on_a_build_that_nobody_tested_and_the_build_stays_untested() -> None:
    ruling = ask(make_known(row("x")), resolved=UNTESTED, ignores=(ignore(),))
    assert (only(ruling).effect, ruling.decision) == (PASS, Decision.INSUFFICIENT)
    assert only(ruling).ignored == "until 2026-11-22 by ann: we never take that path"


# Packages beside torch


@pytest.mark.parametrize(
    ("sign", "found", "effect"),
    [
        ("o", "0.8.0", PASS),
        ("o", "0.8", PASS),
        ("o", "0.8.0+local", PASS),
        ("o", "0.8.1", INSUFFICIENT),
        ("o", "not a version", INSUFFICIENT),
        ("o", "", PASS),
        ("x", "0.8.1", BLOCK),
    ],
)
def test_a_pass_beside_another_version_of_the_issues_own_package_is_no_answer(
    sign: str, found: str, effect: Effect
) -> None:
    issue = make_issue(packages=Packages(requirements=("Ein_ops==0.8.0",)), requires=Requires(package="ein-ops"))
    held = ResolvedBuild(TORCH_25.id, "torch 2.5.1", packages={"ein-ops": found, "numpy": "2.1.0"})
    ruling = ask(make_known(row(sign), issue), resolved=held)
    assert only(ruling).effect is effect
    assert ("and the environment has" in only(ruling).why) is (found in {"0.8.1", "not a version"})
    assert (ruling.decision is Decision.PASS) is (effect is PASS)


def test_where_all_passes_were_beside_other_packages_there_is_no_answer_whatever_unknowns_may_do() -> None:
    issue = make_issue(packages=Packages(requirements=("einops==0.8.0",)), requires=Requires(package="einops"))
    held = ResolvedBuild(TORCH_25.id, "torch 2.5.1", packages={"einops": "0.8.1"})
    ruling = ask(make_known(row("o"), issue), resolved=held, unknown=PASS)
    assert (only(ruling).effect, ruling.decision) == (PASS, Decision.INSUFFICIENT)


def test_a_workaround_seen_beside_another_version_of_the_package_does_not_count() -> None:
    issue = make_issue(packages=Packages(requirements=("einops==0.8.0",)), requires=Requires(package="einops"))
    held = ResolvedBuild(TORCH_25.id, "torch 2.5.1", packages={"einops": "0.8.1"})
    known = make_known(row("x", cures={"aot_eager": "e"}), issue)
    reason = only(ask(known, resolved=held, applied={"toy-1": ("aot_eager",)}))
    assert reason.effect is BLOCK
    assert "was measured with other packages and does not count" in reason.why


# Sentences


@pytest.mark.parametrize(
    ("signs", "policy", "why"),
    [
        ("xo", {}, "1 of 2 watched issues blocks torch 2.5.1 (CUDA 12.4): toy-1"),
        ("xx", {}, "2 of 2 watched issues block torch 2.5.1 (CUDA 12.4): toy-1, toy-2"),
        ("o", {}, "the watched issue does not block torch 2.5.1 (CUDA 12.4)"),
        ("x", {}, "1 of 1 watched issue blocks torch 2.5.1 (CUDA 12.4): toy-1"),
        ("oo", {}, "none of 2 watched issues blocks torch 2.5.1 (CUDA 12.4)"),
        ("o?", {}, "not enough evidence on torch 2.5.1 (CUDA 12.4) for 1 of 2 watched issues: toy-2"),
        ("o?", {"unknown": WARN}, "none of 2 watched issues blocks torch 2.5.1 (CUDA 12.4); 1 to look at: toy-2"),
        (
            "ox",
            {"ignores": (ignore(issue="toy-2"),)},
            "none of 2 watched issues blocks torch 2.5.1 (CUDA 12.4); 1 ignored: toy-2",
        ),
    ],
)
def test_the_first_line_says_what_was_decided_and_for_which_issues(
    signs: str, policy: dict[str, Any], why: str
) -> None:
    issues = [make_issue(f"toy-{at}") for at in range(1, len(signs) + 1)]
    cells = [cell for issue, sign in zip(issues, signs, strict=True) for cell in row(sign, issue.id)]
    assert ask(make_known(cells, *issues), **policy).why == why


def test_a_pass_says_in_its_first_line_what_was_inferred_and_what_rests_on_one_run() -> None:
    from_python = Basis(PYTHON_RULE, TORCH_25.id, HARDWARE, 40, 40)
    from_cpu = Basis(DEVICE_RULE, TORCH_25.id, HARDWARE, 40, 40)
    cells = [
        *row("o", "toy-1", basis=from_python),
        *row("o", "toy-2", basis=from_cpu),
        *row("o", "toy-3", basis=from_cpu),
        *row("o", "toy-4", variants=(VariantFinding("default", Verdict.NOT_AFFECTED, quoted(""), 0, 1),)),
    ]
    known = make_known(cells, *(make_issue(f"toy-{at}") for at in range(1, 5)))
    assert ask(known).why == (
        "none of 4 watched issues blocks torch 2.5.1 (CUDA 12.4); 3 inferred, 2 from CPU, 1 from Python 3.11; "
        "1 on a single run"
    )


def test_the_first_line_names_three_issues_and_counts_the_rest() -> None:
    issues = [make_issue(f"toy-{n}") for n in range(1, 6)]
    ruling = ask(make_known([cell for issue in issues for cell in row("x", issue.id)], *issues))
    assert ruling.why.endswith("toy-1, toy-2, toy-3 and 2 more")
    three = ask(make_known([cell for issue in issues[:3] for cell in row("x", issue.id)], *issues[:3]))
    assert three.why.endswith(": toy-1, toy-2, toy-3")


def test_a_reason_says_all_that_was_weighed() -> None:
    issue = make_issue(severity=Severity.LOW, workarounds=("eager", "clone"))
    known = make_known(row("xx", days=200, cures={"clone": "i"}), issue)
    policy: dict[str, Any] = {
        "minimum": Severity.HIGH,
        "only_new": True,
        "base": TORCH_25.id,
        "applied": {"toy-1": ("clone",)},
    }
    reason = only(ask(known, TORCH_26, ignores=(ignore(YESTERDAY),), **policy))
    assert reason.why == (
        "fails here: 1 of 1 attempt; its severity is low, and only high or worse blocks; the declared workaround clone "
        "does not help here: so it was seen; measured 200 days ago, and after 180 it is stale; the ignore of ann ran "
        "out on 2026-11-20"
    )


def test_a_verdict_is_not_said_twice() -> None:
    assert in_words(make_cell(Verdict.NOT_RUN, reason=NOT_RUN)) == "not run yet"
    assert in_words(make_cell(Verdict.NOT_RUN, reason=quoted("no driver"))) == "not run: no driver"


def test_a_reason_holds_all_that_is_known_of_the_issue_there() -> None:
    issue = make_issue(severity=Severity.CRITICAL, silent=True, workarounds=("clone", "eager"))
    known = make_known(row("xxo", days=3, cures={"clone": "i", "eager": "e"}), issue)
    policy: dict[str, Any] = {"base": TORCH_25.id, "applied": {"toy-1": ("clone", "clone")}}
    assert only(ask(known, TORCH_26, **policy)) == Reason(
        "toy-1",
        "toy-1 fails to compile",
        "Inductor C++",
        Severity.CRITICAL,
        silent=True,
        build=TORCH_26.id,
        hardware=HARDWARE,
        verdict=Verdict.AFFECTED,
        effect=BLOCK,
        why="fails here: 1 of 1 attempt; the declared workaround clone does not help here: so it was seen",
        measured_at=NOON - timedelta(days=3),
        age_days=3,
        workarounds=(
            MeasuredWorkaround("eager", "eager", WorkaroundVerdict.EFFECTIVE, "slower", "```python\nx\n```"),
            MeasuredWorkaround("clone", "clone", WorkaroundVerdict.INEFFECTIVE),
        ),
        applied=("clone",),
        fixed_in="(2.6.0, 2.7.1]",
        first_fixed="torch-2.7.1+cu126",
        evidence_url="/cells/toy-1/torch-2.6.0%2Bcu124?hardware=cpu-x86_64",
        is_new=False,
        assurance=Assurance.MEASURED,
        upstream="https://github.com/pytorch/pytorch/issues/1",
        sign=StatusLabel.WORKAROUND,
    )


def test_a_reason_on_a_build_that_nobody_tested_holds_what_is_known_of_the_issue() -> None:
    issue = make_issue(severity=Severity.CRITICAL, silent=True)
    policy: dict[str, Any] = {"applied": {"toy-1": ("eager", "eager")}, "hardware": (HARDWARE,)}
    assert only(ask(make_known(row("x"), make_issue(links=())), resolved=UNTESTED)).upstream is None
    assert only(ask(make_known(row("x"), issue), resolved=UNTESTED, **policy)) == Reason(
        "toy-1",
        "toy-1 fails to compile",
        "Inductor C++",
        Severity.CRITICAL,
        silent=True,
        build="",
        hardware=HARDWARE,
        verdict=Verdict.NOT_RUN,
        effect=INSUFFICIENT,
        why="not run: the build is not tested",
        applied=("eager",),
        evidence_url="/issues/toy-1",
        upstream="https://github.com/pytorch/pytorch/issues/1",
    )
    several = only(ask(make_known(row("x"), issue), resolved=UNTESTED, hardware=(HARDWARE, GPU)))
    assert several.hardware == ""


def test_a_ruling_says_when_it_was_made_and_of_when_its_knowledge_is() -> None:
    ruling = ask(make_known(row("o")))
    assert (ruling.decided_at, ruling.known_at) == (NOON, datetime(2026, 11, 21, 12, tzinfo=UTC))
    assert (ruling.asked, ruling.hardware) == ("torch 2.5.1 as somebody has it", (HARDWARE,))


def test_a_policy_that_nobody_wrote_is_the_designs() -> None:
    policy = Policy()
    assert (policy.affected, policy.flaky, policy.different_failure) == (BLOCK, BLOCK, BLOCK)
    assert (policy.unknown, policy.stale) == (INSUFFICIENT, WARN)
    assert (policy.release_days, policy.nightly_days) == (180, 7)


def test_one_report_may_be_several_issues_and_all_of_them_are_watched() -> None:
    link = Link(LinkKind.REPORT, "https://github.com/org/thing/issues/7", "org/thing#7")
    known = make_known([], make_issue("thing-7", links=(link,)), make_issue("thing-7b", links=(link,)), make_issue())
    ruling = ask(known, watch=Watch(issues=("org/thing#7",)))
    assert [one.issue for one in ruling.reasons] == ["thing-7", "thing-7b"]
