"""Assurance in the gate: another Python, a Python that is not stated, another variant of the wheel."""

from typing import Any

import pytest

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Packages, Requires, Severity
from knowngood.domain.issue_selectors import Watch
from knowngood.domain.verdicts.inference import VARIANT_RULE
from knowngood.domain.verdicts.verdict import Assurance, Basis, Verdict
from knowngood.environments.resolve import ResolvedBuild
from knowngood.gate.decision import Decision, Reason, Ruling, decide
from knowngood.gate.policy import Accept, Effect, Policy
from knowngood.gate.question import GateQuestion
from tests.domain.given_claims import BUILDS, GPU, ROW, WHEELS, build_of, helps, known_of, made, store
from tests.make import HARDWARE, NOON, make_issue

WHEEL = WHEELS[1]
OLD, PLAIN, NEW = (BUILDS[WHEEL, python] for python in ("3.10", "3.11", "3.12"))


def ask(known: Any, build: Build, *pythons: str, variant: str = "", **policy: Any) -> Ruling:
    policy.setdefault("watch", Watch(issues=(ROW.id,)))
    policy.setdefault("hardware", (HARDWARE,))
    own = None if variant else build.id
    resolved = ResolvedBuild(own, "torch as somebody has it", pythons=pythons or (build.python,), variant=variant)
    return decide(GateQuestion(resolved, Policy(**policy), NOON, known))


def only(ruling: Ruling) -> Reason:
    (reason,) = ruling.reasons
    return reason


def test_an_inferred_failure_blocks_and_says_what_it_stands_on() -> None:
    reason = only(ask(store([made(ROW.id, PLAIN, "x")]), NEW))
    assert (reason.effect, reason.assurance, reason.build) == (Effect.BLOCK, Assurance.INFERRED, NEW.id)
    assert f"inferred from {PLAIN.in_words}" in reason.why


@pytest.mark.parametrize("letter", ["x", "o"])
def test_a_strict_policy_takes_no_inferred_answer(letter: str) -> None:
    ruling = ask(store([made(ROW.id, PLAIN, letter)]), NEW, accept=Accept.MEASURED)
    assert (ruling.decision, only(ruling).effect) == (Decision.INSUFFICIENT, Effect.INSUFFICIENT)
    assert only(ruling).why.endswith("the policy takes measured answers only")


@pytest.mark.parametrize("unknown", Effect)
@pytest.mark.parametrize("letter", list("xo~!"))
def test_an_answer_that_is_not_accepted_decides_what_no_answer_decides(letter: str, unknown: Effect) -> None:
    policy = {"accept": Accept.MEASURED, "unknown": unknown}
    refused = ask(store([made(ROW.id, PLAIN, letter)]), NEW, **policy)
    assert refused.decision is ask(store([]), NEW, **policy).decision is not Decision.PASS


def test_a_strict_policy_takes_a_measured_one() -> None:
    assert ask(store([made(ROW.id, PLAIN, "o")]), PLAIN, accept=Accept.MEASURED).decision is Decision.PASS


@pytest.mark.parametrize(
    ("cells", "decision", "words"),
    [
        ({"3.10": "o", "3.11": "o", "3.12": "o"}, Decision.PASS, ""),
        ({"3.10": "x", "3.11": "x", "3.12": "x"}, Decision.BLOCK, ""),
        ({"3.10": "o", "3.11": "o", "3.12": "x"}, Decision.INSUFFICIENT, "only on Python 3.12"),
        ({"3.10": "x", "3.11": "o", "3.12": "!"}, Decision.INSUFFICIENT, "only on Python 3.10 and 3.12"),
        ({"3.11": "o"}, Decision.PASS, ""),
        ({"3.11": "x"}, Decision.BLOCK, ""),
        ({"3.10": "o", "3.11": "o", "3.12": "?"}, Decision.PASS, "not known on Python 3.12"),
        ({"3.11": "x", "3.12": "?"}, Decision.BLOCK, "not known on Python 3.12"),
        ({}, Decision.INSUFFICIENT, "not run"),
        ({"3.12": "-"}, Decision.INSUFFICIENT, "not run"),
    ],
)
def test_an_environment_that_does_not_state_its_python_is_judged_by_all_that_it_may_have(
    cells: dict[str, str], decision: Decision, words: str
) -> None:
    known = store([made(ROW.id, BUILDS[WHEEL, python], letter) for python, letter in cells.items()])
    ruling = ask(known, PLAIN, "3.10", "3.11", "3.12")
    assert ruling.decision is decision
    assert words in only(ruling).why
    assert ("say --python" in only(ruling).why) is ("only on" in words)


def test_a_narrower_environment_is_judged_by_what_is_left() -> None:
    known = store([made(ROW.id, PLAIN, "o"), made(ROW.id, NEW, "x"), made(ROW.id, OLD, "o")])
    assert ask(known, NEW, "3.12").decision is Decision.BLOCK
    assert ask(known, PLAIN, "3.10", "3.11").decision is Decision.PASS


def test_a_failure_that_only_one_possible_python_can_have_leaves_it_open() -> None:
    named = make_issue("named-1", requires=Requires(python=">=3.12"))
    known = store([made(named.id, NEW, "x")], named)
    watch = Watch(issues=(named.id,))
    open_ = ask(known, PLAIN, "3.10", "3.11", "3.12", watch=watch)
    assert (open_.decision, only(open_).effect) == (Decision.INSUFFICIENT, Effect.INSUFFICIENT)
    assert ask(known, NEW, "3.12", watch=watch).decision is Decision.BLOCK


def test_what_one_possible_python_cannot_have_and_another_was_not_asked_is_unknown() -> None:
    named = make_issue("named-1", requires=Requires(python=">=3.12"))
    reason = only(ask(store([], named), PLAIN, "3.11", "3.12", watch=Watch(issues=(named.id,))))
    assert (reason.verdict, reason.effect) == (Verdict.NOT_RUN, Effect.INSUFFICIENT)


def test_pythons_are_named_by_their_number() -> None:
    line = {python: build_of(WHEEL, python) for python in ("3.10", "3.9", "3.11", "3.12")}
    cells = [made(ROW.id, line[python], letter) for python, letter in {"3.10": "x", "3.9": "x", "3.12": "o"}.items()]
    some = only(ask(known_of(cells, [ROW], line), line["3.12"], *line))
    assert "only on Python 3.9 and 3.10" in some.why
    assert some.assurance is Assurance.NOT_KNOWN
    open_ = only(ask(known_of(cells[2:], [ROW], line), line["3.12"], *line))
    assert "not known on Python 3.9 and 3.10 and 3.11" in open_.why


def test_a_declared_workaround_that_helps_on_the_python_that_fails_lets_it_pass() -> None:
    cell = made(ROW.id, NEW, "x", workarounds={"aot_eager": helps()})
    known = store([cell, made(ROW.id, PLAIN, "o"), made(ROW.id, OLD, "o")])
    ruling = ask(known, PLAIN, "3.10", "3.11", "3.12", applied={ROW.id: ("aot_eager",)})
    assert ruling.decision is Decision.PASS


def test_another_variant_answers_only_where_the_policy_takes_it() -> None:
    known = store([made(ROW.id, PLAIN, "o")])
    refused = ask(known, PLAIN, variant=PLAIN.id)
    taken = ask(known, PLAIN, variant=PLAIN.id, accept_variant=True)
    assert (refused.decision, refused.build) == (Decision.INSUFFICIENT, None)
    assert (taken.decision, taken.build) == (Decision.PASS, PLAIN.id)
    assert (only(taken).assurance, only(taken).grounds) == (
        Assurance.INFERRED,
        (Basis(VARIANT_RULE, PLAIN.id, HARDWARE),),
    )
    assert any("another variant, answers for it" in note for note in taken.notes)


def test_another_variant_is_taken_by_no_policy_that_wants_measured_answers() -> None:
    known = store([made(ROW.id, PLAIN, "o")])
    ruling = ask(known, PLAIN, variant=PLAIN.id, accept_variant=True, accept=Accept.MEASURED)
    assert ruling.decision is Decision.INSUFFICIENT


def test_another_variant_that_has_no_answer_itself_is_asked_in_vain() -> None:
    known = store([made(ROW.id, PLAIN, "?")])
    reason = only(ask(known, PLAIN, variant=PLAIN.id, accept_variant=True))
    assert (reason.verdict, reason.grounds) == (Verdict.INCONCLUSIVE, ())


def test_another_variant_and_another_python_together_are_not_known() -> None:
    known = store([made(ROW.id, PLAIN, "o")])
    reason = only(ask(known, NEW, variant=NEW.id, accept_variant=True))
    assert (reason.effect, reason.assurance) == (Effect.INSUFFICIENT, Assurance.NOT_KNOWN)
    assert (reason.why, reason.grounds) == ("not run: would rest on more than one inference", ())


def test_another_variant_says_nothing_of_a_gpu() -> None:
    cuda = make_issue("gpu-1", requires=Requires(device="cuda"))  # type: ignore[arg-type]  # its value
    known = store([made(cuda.id, PLAIN, "o", GPU)], cuda)
    asked = {"watch": Watch(issues=(cuda.id,)), "hardware": (GPU,)}
    assert ask(known, PLAIN, variant=PLAIN.id, accept_variant=True, **asked).decision is Decision.INSUFFICIENT


def test_a_reason_names_the_thread_upstream_and_how_many_runs_it_rests_on() -> None:
    reason = only(ask(store([made(ROW.id, PLAIN, "x", runs=1)]), PLAIN))
    assert (reason.runs, reason.upstream) == (1, ROW.links[0].url)


@pytest.mark.parametrize(
    ("packages", "watch", "decision", "words"),
    [
        ({"torchao": "0.12.0"}, Watch(issues=("ao-1", ROW.id)), Decision.BLOCK, "fails here"),
        (
            {"numpy": "2.0"},
            Watch(issues=("ao-1", ROW.id)),
            Decision.PASS,
            "concerns only environments with torchao, and the environ",
        ),
        ({}, Watch(issues=("ao-1", ROW.id)), Decision.BLOCK, "fails here"),
        ({}, Watch(packages=("TorchAO",)), Decision.BLOCK, "fails here"),
        ({}, Watch(severity=Severity.LOW), Decision.PASS, "and nothing is known of the environment's packages"),
        (
            {"numpy": "2.0"},
            Watch(issues=("ao-1",)),
            Decision.INSUFFICIENT,
            "concerns only environments with torchao, and the environ",
        ),
    ],
)
def test_a_row_of_a_package_counts_for_who_has_it_or_names_it_where_nothing_is_known(
    packages: dict[str, str], watch: Watch, decision: Decision, words: str
) -> None:
    row = make_issue("ao-1", requires=Requires(package="torchao"), packages=Packages(requirements=("torchao==0.12.0",)))
    known = store([made(row.id, PLAIN, "x"), made(ROW.id, PLAIN, "o")], row, ROW)
    resolved = ResolvedBuild(PLAIN.id, "torch as somebody has it", pythons=("3.11",), packages=packages)
    ruling = decide(GateQuestion(resolved, Policy(watch=watch, hardware=(HARDWARE,), unknown=Effect.PASS), NOON, known))
    assert ruling.decision is decision
    assert words in next(reason.why for reason in ruling.reasons if reason.issue == row.id)
    assert {reason.hardware for reason in ruling.reasons} == {HARDWARE}


@pytest.mark.parametrize(
    ("packages", "decision", "effect"),
    [
        ({"numpy": "2.2.6"}, Decision.INSUFFICIENT, Effect.PASS),
        ({"torchao": "0.12.0"}, Decision.BLOCK, Effect.BLOCK),
        ({}, Decision.BLOCK, Effect.BLOCK),
    ],
)
def test_on_a_build_that_is_not_tested_a_row_of_a_package_that_is_not_there_blocks_nothing(
    packages: dict[str, str], decision: Decision, effect: Effect
) -> None:
    row = make_issue("ao-1", requires=Requires(package="torchao"))
    resolved = ResolvedBuild(None, "torch as somebody has it", packages=packages)
    policy = Policy(watch=Watch(issues=(row.id,)), unknown=Effect.BLOCK)
    ruling = decide(GateQuestion(resolved, policy, NOON, store([], row)))
    assert (ruling.decision, only(ruling).effect) == (decision, effect)
    assert only(ruling).verdict is (Verdict.NOT_APPLICABLE if effect is Effect.PASS else Verdict.NOT_RUN)
