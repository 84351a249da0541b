"""Properties of every question, over random cells, policies and environments."""

from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowngood.domain.issue import Issue, Severity
from knowngood.domain.issue_selectors import Watch
from knowngood.domain.message import quoted
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import CONCLUSIVE, Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from knowngood.environments.resolve import ResolvedBuild
from knowngood.gate.decision import Decision, Ruling, decide
from knowngood.gate.policy import Effect, Ignore, Policy, RemedyFilter
from knowngood.gate.question import UNKNOWN, GateQuestion
from knowngood.gate.rules import EFFECT_RANK
from tests.gate.given_gate import BUILDS, GPU, TORCH_25, make_known
from tests.make import HARDWARE, NOON, make_issue

CURES = ("eager", "clone")
IDS = ("toy-1", "toy-2", "toy-3")
CLASSES = (HARDWARE, GPU)
MILDEST = (Decision.PASS, Decision.INSUFFICIENT, Decision.BLOCK)

effects = st.sampled_from(Effect)
days = st.integers(-2, 400)
subsets = st.lists(st.sampled_from(IDS), unique=True)


def issue_of(id_: str, severity: Severity, *, silent: bool) -> Issue:
    return make_issue(id_, workarounds=CURES, severity=severity, silent=silent)


@st.composite
def cells(draw: st.DrawFn, issue: str, build: str, hardware: str) -> Cell:
    verdict = draw(st.sampled_from(Verdict))
    found = {name: WorkaroundFinding(draw(st.sampled_from(WorkaroundVerdict))) for name in CURES}
    return Cell(
        issue, build, hardware, verdict, quoted("because"), NOON - timedelta(days=draw(days)), workarounds=found
    )


@st.composite
def worlds(draw: st.DrawFn) -> Known:
    issues = [issue_of(id_, draw(st.sampled_from(Severity)), silent=draw(st.booleans())) for id_ in IDS]
    places = list(product(IDS, [build.id for build in BUILDS[:3]], CLASSES))
    filled = draw(st.lists(st.sampled_from(places), unique=True))
    return make_known([draw(cells(*place)) for place in filled], *issues)


@st.composite
def ignores(draw: st.DrawFn) -> Ignore:
    return Ignore(draw(st.sampled_from(IDS)), "reason", "ann", NOON.date() + timedelta(days=draw(st.integers(-3, 3))))


policies = st.builds(
    Policy,
    watch=st.builds(Watch, issues=st.lists(st.sampled_from(IDS), min_size=1, unique=True).map(tuple)),
    hardware=st.sampled_from([(), (HARDWARE,), (GPU,), CLASSES]),
    affected=effects,
    flaky=effects,
    different_failure=effects,
    unknown=effects,
    stale=effects,
    remedy=st.sampled_from(RemedyFilter),
    minimum=st.sampled_from(Severity),
    silent_always=st.booleans(),
    only_new=st.booleans(),
    base=st.sampled_from([build.id for build in BUILDS]),
    applied=st.dictionaries(
        st.sampled_from(IDS), st.lists(st.sampled_from([*CURES, "unheard"]), unique=True).map(tuple)
    ),
    ignores=st.lists(ignores(), max_size=3).map(tuple),
    refuse_assumed=st.booleans(),
)
environments = st.builds(
    ResolvedBuild,
    build=st.sampled_from([*(build.id for build in BUILDS), None]),
    description=st.just("torch as somebody has it"),
    is_assumed=st.booleans(),
)


def ask(known: Known, policy: Policy, environment: ResolvedBuild) -> Ruling:
    return decide(GateQuestion(environment, policy, NOON, known))


def with_cell(known: Known, cell: Cell) -> Known:
    return replace(known, cells={**known.cells, (cell.issue, cell.build, cell.hardware): cell})


def strictest(policy: Policy) -> Policy:
    """Nothing in it lets a failure pass."""
    blocking = replace(policy, affected=Effect.BLOCK, flaky=Effect.BLOCK, different_failure=Effect.BLOCK)
    return replace(blocking, remedy=RemedyFilter.ANY, minimum=Severity.LOW, only_new=False, applied={}, ignores=())


@given(worlds(), policies, environments, st.sampled_from(Verdict))
def test_watching_one_more_issue_that_fails_never_makes_a_block_milder(
    known: Known, policy: Policy, environment: ResolvedBuild, other: Verdict
) -> None:
    new = issue_of("new-1", Severity.HIGH, silent=False)
    added = replace(known, issues={**known.issues, new.id: new})
    for hardware, verdict in zip(CLASSES, (Verdict.AFFECTED, other), strict=True):
        added = with_cell(added, Cell(new.id, environment.build or "x", hardware, verdict, quoted("because"), NOON))
    before = ask(added, policy, environment)
    watch = replace(policy.watch, issues=(*policy.watch.issues, new.id))
    after = ask(added, replace(policy, watch=watch), environment)
    if before.decision is Decision.BLOCK or has_answer(before):
        assert MILDEST.index(after.decision) >= MILDEST.index(before.decision)
    strict = ask(added, strictest(replace(policy, watch=watch, hardware=(HARDWARE,))), environment)
    assert environment.build is None or strict.decision is Decision.BLOCK


def has_answer(ruling: Ruling) -> bool:
    return any(reason.verdict in CONCLUSIVE for reason in ruling.reasons)


@given(worlds(), policies, environments)
def test_an_unknown_passes_only_where_the_policy_says_so(
    known: Known, policy: Policy, environment: ResolvedBuild
) -> None:
    ruling = ask(known, policy, environment)
    unknowns = [reason for reason in ruling.reasons if reason.verdict in UNKNOWN]
    for reason in unknowns:
        if not reason.ignored:
            assert EFFECT_RANK[reason.effect] >= EFFECT_RANK[policy.unknown]
    if ruling.decision is Decision.PASS:
        assert has_answer(ruling)
        assert ruling.build is not None
        assert all(one.ignored or policy.unknown in {Effect.PASS, Effect.WARN} for one in unknowns)


@given(worlds(), policies, environments, st.sampled_from(sorted(UNKNOWN)))
def test_forgetting_an_answer_never_turns_anything_into_a_pass(
    known: Known, policy: Policy, environment: ResolvedBuild, unknown: Verdict
) -> None:
    """Where unknowns are held to be no better than insufficient, and the classes are named that have to answer. An
    issue of the CPU path has to answer on a GPU only as long as it was measured there.
    """
    policy = replace(policy, unknown=Effect.INSUFFICIENT, ignores=(), hardware=policy.hardware or CLASSES)
    before = ask(known, policy, environment)
    for (issue, build, hardware), cell in known.cells.items():
        if build != environment.build or cell.verdict is Verdict.NOT_APPLICABLE:
            continue
        lost = with_cell(known, replace(cell, verdict=unknown))
        if lost.cell(lost.issues[issue], lost.builds[build], hardware).verdict is not Verdict.NOT_APPLICABLE:
            after = ask(lost, policy, environment)
            assert after.decision is not Decision.PASS or before.decision is Decision.PASS


@given(worlds(), policies, environments, st.randoms(use_true_random=False))
def test_no_order_of_anything_matters(known: Known, policy: Policy, environment: ResolvedBuild, chance: Any) -> None:
    def shuffled(mapping: Any) -> Any:
        items = list(mapping.items())
        chance.shuffle(items)
        return dict(items)

    watch = replace(policy.watch, issues=tuple(chance.sample(policy.watch.issues, len(policy.watch.issues))))
    other = replace(known, **{name: shuffled(getattr(known, name)) for name in ("issues", "builds", "cells")})
    ignored = tuple(chance.sample(policy.ignores, len(policy.ignores)))
    again = replace(policy, watch=watch, ignores=ignored, hardware=policy.hardware[::-1])
    before, after = ask(known, policy, environment), ask(other, again, environment)
    assert after == before


@given(worlds(), policies, environments, st.sampled_from(IDS), st.sampled_from([*CURES, "unheard"]))
def test_declaring_a_workaround_never_turns_a_pass_into_a_block(
    known: Known, policy: Policy, environment: ResolvedBuild, issue: str, workaround: str
) -> None:
    before = ask(known, policy, environment)
    declared = {**policy.applied, issue: (*policy.applied.get(issue, ()), workaround)}
    after = ask(known, replace(policy, applied=declared), environment)
    assert MILDEST.index(after.decision) <= MILDEST.index(before.decision)
    others = [reason for reason in after.reasons if reason.issue != issue]
    assert others == [reason for reason in before.reasons if reason.issue != issue]


@given(worlds(), policies, environments, ignores())
def test_ignoring_one_issue_changes_no_reason_of_another_and_makes_nothing_graver(
    known: Known, policy: Policy, environment: ResolvedBuild, ignore: Ignore
) -> None:
    before = ask(known, policy, environment)
    after = ask(known, replace(policy, ignores=(*policy.ignores, ignore)), environment)
    assert MILDEST.index(after.decision) <= MILDEST.index(before.decision)
    others = [reason for reason in after.reasons if reason.issue != ignore.issue]
    assert others == [reason for reason in before.reasons if reason.issue != ignore.issue]


@given(worlds(), policies, environments, ignores())
def test_an_ignore_that_ran_out_changes_only_what_is_said(
    known: Known, policy: Policy, environment: ResolvedBuild, ignore: Ignore
) -> None:
    over = replace(ignore, expires=NOON.date() - timedelta(days=1))
    plain = replace(policy, ignores=())
    before, after = ask(known, plain, environment), ask(known, replace(plain, ignores=(over,)), environment)
    said = [replace(reason, why="") for reason in after.reasons]
    assert said == [replace(reason, why="") for reason in before.reasons]
    assert (after.decision, after.why, after.counts) == (before.decision, before.why, before.counts)
    told = "the ignore of ann ran out on 2026-11-20"
    assert all(told in reason.why for reason in after.reasons if reason.issue == ignore.issue)


@given(worlds(), policies, environments)
def test_every_question_has_an_answer_that_adds_up(known: Known, policy: Policy, environment: ResolvedBuild) -> None:
    ruling = ask(known, policy, environment)
    assert {reason.issue for reason in ruling.reasons} == set(policy.watch.issues)
    assert sum(ruling.counts.values()) == len(ruling.reasons)
    assert len({(reason.issue, reason.hardware) for reason in ruling.reasons}) == len(ruling.reasons)
    graveness = [EFFECT_RANK[reason.effect] for reason in ruling.reasons]
    assert graveness == sorted(graveness, reverse=True)
    assert (ruling.decision is Decision.BLOCK) is (ruling.counts[Effect.BLOCK] > 0)
    assert not (ruling.counts[Effect.INSUFFICIENT] and ruling.decision is Decision.PASS)
    assert ruling.why
    assert all(reason.why for reason in ruling.reasons)


@pytest.mark.parametrize("verdict", [Verdict.AFFECTED, Verdict.FLAKY, Verdict.DIFFERENT_FAILURE])
def test_the_properties_see_a_gate_that_would_let_a_failure_pass(verdict: Verdict) -> None:
    """A guard of the guards: under the strictest policy every kind of failure blocks in this world."""
    known = make_known([Cell("toy-1", TORCH_25.id, HARDWARE, verdict, quoted("because"), NOON)])
    policy = strictest(Policy(watch=Watch(issues=("toy-1",))))
    assert ask(known, policy, ResolvedBuild(TORCH_25.id, "torch")).decision is Decision.BLOCK
