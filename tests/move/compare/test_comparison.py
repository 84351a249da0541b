"""Transitions of an issue between two builds: the whole table of verdict pairs, the pairing of cells, the sentence."""

import random
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Device, Issue, Packages, Requires, Severity
from knowngood.domain.message import Message, aside, english, quoted
from knowngood.domain.verdicts.inference import DEVICE_RULE, PYTHON_RULE
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import (
    CONCLUSIVE,
    EXCESSES,
    Assurance,
    Basis,
    Cell,
    VariantFinding,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
)
from knowngood.move.compare.comparison import Comparison, compare, most_severe_first, outcome, sentence
from knowngood.move.pair import (
    Group,
    InstalledPackages,
    IssuePair,
    SideStanding,
    Transition,
    WorkaroundTurn,
    passes_needed,
    standing_of,
    transition_of,
    workaround_turn,
)
from knowngood.web.html.i18n import Language, as_text
from tests.domain import given_claims
from tests.make import HARDWARE, NOON, make_build, make_issue

ISSUE = make_issue()
A = make_build("2.5.1+cu124", pinned_triton="3.1.0")
B = make_build("2.6.0+cu124")
A_312 = make_build("2.5.1+cu124", pinned_triton="3.1.0", python="3.12")
B_312 = make_build("2.6.0+cu124", python="3.12")
B_MISMATCHED = make_build("2.6.0+cu124", triton="3.3.0")
BUILDS = (A, B, A_312, B_312, B_MISMATCHED)
NO_CELL = "no cell"

DOCUMENT = Path(__file__).parents[3] / "docs" / "compare.md"


def rows_of_table() -> Iterable[tuple[str, str, Transition]]:
    """The table that readers are given, read back: from, to, and what becomes of it."""
    lines = [line.strip("| ") for line in DOCUMENT.read_text().splitlines()]
    first = next(n for n, line in enumerate(lines) if line.startswith("from \\ to"))
    _, *heads = [cell.strip() for cell in lines[first].split("|")]
    for line in lines[first + 2 :]:
        if not line:
            return
        before, *told = [cell.strip() for cell in line.split("|")]
        for after, word in zip(heads, told, strict=True):
            yield before, after, Transition(word)


PAIRS = list(rows_of_table())


def cell_that_says(word: str) -> Cell | None:
    return None if word == NO_CELL else Cell(ISSUE.id, A.id, HARDWARE, Verdict(word), quoted("because"))


@pytest.mark.parametrize(("before", "after", "transition"), PAIRS, ids=[f"{a} to {b}" for a, b, _ in PAIRS])
def test_every_pair_of_verdicts_has_its_transition(before: str, after: str, transition: Transition) -> None:
    assert transition_of(cell_that_says(before), cell_that_says(after)) is transition


def test_the_table_names_every_pair_of_verdicts_and_every_transition() -> None:
    words = [*(verdict.value for verdict in Verdict), NO_CELL]
    assert {(before, after) for before, after, _ in PAIRS} == set(product(words, words))
    assert {transition for _, _, transition in PAIRS} == set(Transition)


def test_only_a_proven_pass_is_ever_called_fixed() -> None:
    fixed = {(before, after) for before, after, transition in PAIRS if transition is Transition.FIXED}
    assert {after for _, after in fixed} == {"not_affected"}
    assert {before for before, _ in fixed} == {"affected", "bigger", "more_work", "slower", "different_failure"}


SWAPPED = {
    Transition.FIXED: Transition.REGRESSED,
    Transition.REGRESSED: Transition.FIXED,
    Transition.APPEARED: Transition.DISAPPEARED,
    Transition.DISAPPEARED: Transition.APPEARED,
    Transition.NOW_UNKNOWN: Transition.WAS_UNKNOWN,
    Transition.WAS_UNKNOWN: Transition.NOW_UNKNOWN,
}


@pytest.mark.parametrize(("before", "after", "transition"), PAIRS, ids=[f"{a} to {b}" for a, b, _ in PAIRS])
def test_swapping_the_sides_swaps_the_transition(before: str, after: str, transition: Transition) -> None:
    swapped = transition_of(cell_that_says(after), cell_that_says(before))
    assert swapped is SWAPPED.get(transition, transition)


def _seen(verdict: Verdict, k: int, n: int, variant: str = "default") -> Cell:
    return replace(_cell(verdict), variants=(VariantFinding(variant, verdict, quoted("because"), k, n),))


@pytest.mark.parametrize(
    ("k", "n", "passes", "needed"),
    [
        (5, 10, 4, 5),  # four passes in a row happen once in sixteen times
        (5, 10, 5, 0),
        (9, 10, 1, 2),
        (9, 10, 2, 0),
        (1, 10, 10, 29),
        (1, 10, 29, 0),
        (1, 2, 0, 5),
    ],
)
def test_a_flaky_failure_is_gone_or_new_only_where_passes_are_too_many_to_be_luck(
    k: int, n: int, passes: int, needed: int
) -> None:
    flaky, passing = _seen(Verdict.FLAKY, k, n), _seen(Verdict.NOT_AFFECTED, 0, passes)
    assert passes_needed(flaky, passing) == needed
    assert transition_of(flaky, passing) is (Transition.NOW_UNKNOWN if needed else Transition.FIXED)
    assert transition_of(passing, flaky) is (Transition.WAS_UNKNOWN if needed else Transition.REGRESSED)


def test_passes_with_another_variant_say_nothing_of_a_flaky_one() -> None:
    flaky, passing = _seen(Verdict.FLAKY, 5, 10), _seen(Verdict.NOT_AFFECTED, 0, 50, "another")
    assert transition_of(flaky, passing) is Transition.NOW_UNKNOWN


def test_another_failure_than_the_issues_own_is_the_same_one_only_where_its_text_agrees() -> None:
    def other(reason: str) -> Cell:
        return Cell(ISSUE.id, A.id, HARDWARE, Verdict.DIFFERENT_FAILURE, quoted(reason))

    moved = other("died by SIGSEGV at 0x7f31aa in line 120"), other("died by SIGSEGV at 0x55e1 in line 133")
    assert transition_of(*moved) is Transition.STILL_AFFECTED
    assert transition_of(other("died by SIGSEGV"), other("ImportError: no name")) is Transition.CHANGED_FAILURE


def test_old_evidence_changes_no_transition_and_is_told() -> None:
    before, after = _cell(Verdict.AFFECTED, A.id), _cell(Verdict.NOT_AFFECTED, B.id)
    years_later = NOON.replace(year=NOON.year + 2)
    compared = compare([ISSUE], A, B, HARDWARE, _known([before, after], [ISSUE]), now=years_later)
    assert compared.pairs[0].transition is Transition.FIXED
    assert compared.pairs[0].old == (True, True)
    assert english(sentence(compared)).endswith(": none newly broken, 1 fixed (1 by old evidence)")


# -- workarounds -------------------------------------------------------------------------------------------------------

E, P, I_, U, H, X = (
    WorkaroundVerdict.EFFECTIVE,
    WorkaroundVerdict.PARTIAL,
    WorkaroundVerdict.INEFFECTIVE,
    WorkaroundVerdict.UNNECESSARY,
    WorkaroundVerdict.HARMFUL,
    WorkaroundVerdict.UNVERIFIED,
)
FAILS, PASSES, UNSURE = Verdict.AFFECTED, Verdict.NOT_AFFECTED, Verdict.INCONCLUSIVE


def test_a_workaround_may_be_needed_for_what_a_pass_does_not_cover() -> None:
    before = Cell("toy-1", "a", HARDWARE, FAILS, quoted(""), workarounds={"clone": WorkaroundFinding(E)})
    after = Cell("toy-1", "b", HARDWARE, PASSES, quoted(""), not_covered=("an argument",))
    assert workaround_turn(before, after, "clone") is WorkaroundTurn.NO_LONGER_VERIFIED


@pytest.mark.parametrize(
    ("before", "after", "turn"),
    [
        ((FAILS, E), (FAILS, E), WorkaroundTurn.STILL_WORKS),
        ((FAILS, E), (FAILS, I_), WorkaroundTurn.STOPPED_WORKING),
        ((FAILS, E), (FAILS, X), WorkaroundTurn.NO_LONGER_VERIFIED),
        ((FAILS, E), (FAILS, H), WorkaroundTurn.HARMFUL),
        ((FAILS, E), (PASSES, U), WorkaroundTurn.NO_LONGER_NEEDED),
        ((FAILS, E), (PASSES, X), WorkaroundTurn.NO_LONGER_NEEDED),
        ((FAILS, E), (PASSES, H), WorkaroundTurn.HARMFUL),
        ((FAILS, E), (Verdict.NOT_APPLICABLE, X), WorkaroundTurn.NO_LONGER_NEEDED),
        ((FAILS, E), (Verdict.NO_BUILD, X), WorkaroundTurn.NO_LONGER_VERIFIED),
        ((FAILS, E), (UNSURE, X), WorkaroundTurn.NO_LONGER_VERIFIED),
        ((FAILS, E), (Verdict.NOT_RUN, X), WorkaroundTurn.NO_LONGER_VERIFIED),
        ((FAILS, E), (Verdict.FLAKY, X), WorkaroundTurn.NO_LONGER_VERIFIED),
        ((FAILS, I_), (FAILS, E), WorkaroundTurn.NOW_WORKS),
        ((FAILS, X), (FAILS, E), WorkaroundTurn.NOW_WORKS),
        ((PASSES, U), (FAILS, E), WorkaroundTurn.NOW_NEEDED),
        ((PASSES, X), (FAILS, E), WorkaroundTurn.NOW_NEEDED),
        ((Verdict.NOT_RUN, X), (FAILS, E), WorkaroundTurn.NOW_NEEDED),
        ((PASSES, U), (PASSES, U), None),
        ((FAILS, I_), (FAILS, I_), None),
        ((FAILS, I_), (PASSES, U), None),
        ((UNSURE, X), (UNSURE, X), None),
        ((FAILS, E), (FAILS, P), WorkaroundTurn.NO_LONGER_VERIFIED),
        ((FAILS, P), (FAILS, E), WorkaroundTurn.NOW_WORKS),
        ((FAILS, P), (PASSES, X), None),
    ],
)
def test_a_workaround_is_followed_from_one_build_to_the_other(
    before: tuple[Verdict, WorkaroundVerdict], after: tuple[Verdict, WorkaroundVerdict], turn: WorkaroundTurn | None
) -> None:
    there, here = (
        replace(_cell(verdict), workarounds={"aot": WorkaroundFinding(one)}) for verdict, one in (before, after)
    )
    assert workaround_turn(there, here, "aot") is turn
    assert IssuePair(ISSUE, there, here, (A, B)).turns == ({"aot": turn} if turn else {})


def test_one_that_fails_with_some_variants_now_stopped_working() -> None:
    helped = replace(_cell(FAILS), workarounds={"aot": WorkaroundFinding(E)})
    partly = replace(_cell(FAILS), workarounds={"aot": WorkaroundFinding(P, helped=("a",), failed=("b",))})
    assert workaround_turn(helped, partly, "aot") is WorkaroundTurn.STOPPED_WORKING


def test_an_issue_that_leaves_the_matrix_makes_no_workaround_needless() -> None:
    cured = replace(_cell(FAILS), workarounds={"aot": WorkaroundFinding(E)})
    assert workaround_turn(cured, None, "aot") is WorkaroundTurn.NO_LONGER_VERIFIED


# -- which cells pair --------------------------------------------------------------------------------------------------


def _cell(verdict: Verdict, build: str = A.id, issue: str = ISSUE.id, hardware: str = HARDWARE) -> Cell:
    measured = NOON if verdict not in {Verdict.NOT_RUN, Verdict.NOT_APPLICABLE} else None
    return Cell(issue, build, hardware, verdict, quoted("because"), measured_at=measured)


def _known(cells: Iterable[Cell], issues: Iterable[Issue]) -> Known:
    return given_claims.known_of(cells, issues, {build.id: build for build in BUILDS})


def _compared(*cells: Cell, issues: Iterable[Issue] = (ISSUE,), a: str = A.id, b: str = B.id) -> Comparison:
    by_id = {build.id: build for build in BUILDS}
    issues = list(issues)
    return compare(issues, by_id[a], by_id[b], HARDWARE, _known(cells, issues))


def _pair(before: str, after: str, **changes: object) -> IssuePair:
    """From 2.5.1 to 2.6.0 on Python 3.11: what its own letters say, a blank being inferred from Python 3.12 by
    `before_12` and `after_12`.
    """
    wheels = given_claims.WHEELS[:2]
    letters = {("3.11", 0): before, ("3.11", 1): after}
    letters |= {("3.12", 0): str(changes.get("before_12", " ")), ("3.12", 1): str(changes.get("after_12", " "))}
    cells = [
        given_claims.made(given_claims.ROW.id, given_claims.BUILDS[wheels[at], python], letter)
        for (python, at), letter in letters.items()
        if letter != " "
    ]
    known = given_claims.store(cells)
    old, new = (given_claims.BUILDS[wheel, "3.11"] for wheel in wheels)
    (pair,) = compare([given_claims.ROW], old, new, HARDWARE, known).pairs
    return pair


def test_each_side_is_what_is_claimed_of_that_very_build() -> None:
    """Another Python of it stands in by the one rule of inference, or not at all."""
    inferred = _pair("x", " ", after_12="o")
    assert (inferred.group, inferred.assurance) == (Group.FIXED, Assurance.INFERRED)
    assert inferred.after.basis is not None
    assert inferred.after.basis.build.endswith("~py312")
    measured = _pair("x", "x", after_12="o")
    assert (measured.group, measured.assurance) == (Group.STILL_FAILS, Assurance.MEASURED)


def test_without_the_rules_grounds_another_python_says_nothing() -> None:
    compared = _compared(_cell(FAILS, A.id), _cell(PASSES, B_312.id))
    assert compared.pairs[0].transition is Transition.NOW_UNKNOWN
    assert compared.pairs[0].assurance is Assurance.NOT_KNOWN


def test_two_rules_say_nothing_together() -> None:
    python, device = (Basis(rule, A.id, HARDWARE) for rule in (PYTHON_RULE, DEVICE_RULE))
    failing, passing = _cell(FAILS), _cell(PASSES)
    assert transition_of(replace(failing, basis=python), replace(passing, basis=device)) is Transition.STILL_UNKNOWN
    assert transition_of(replace(failing, basis=python), replace(passing, basis=python)) is Transition.FIXED
    assert transition_of(failing, replace(passing, basis=device)) is Transition.FIXED


def test_one_failure_that_is_measured_here_and_inferred_there_is_one_failure() -> None:
    """Of what is inferred the reason names its ground: the failure is told by the ground's own."""
    assert _pair("!", " ", after_12="!").group is Group.STILL_FAILS


def test_two_pythons_of_one_build_can_be_compared() -> None:
    compared = _compared(_cell(FAILS, B.id), _cell(PASSES, B_312.id), a=B.id, b=B_312.id)
    assert compared.pairs[0].transition is Transition.FIXED


def test_a_mismatched_triton_is_a_build_of_its_own() -> None:
    cells = [_cell(PASSES, B.id), _cell(FAILS, B_MISMATCHED.id)]
    assert _compared(*cells, a=B.id, b=B_MISMATCHED.id).pairs[0].transition is Transition.REGRESSED
    assert _compared(*cells).pairs[0].after.build == B.id


def test_cells_of_another_hardware_class_pair_with_nothing() -> None:
    compared = _compared(_cell(FAILS, A.id), _cell(PASSES, B.id, hardware="cpu-aarch64"))
    assert compared.pairs[0].transition is Transition.NOW_UNKNOWN


def test_packages_that_follow_the_build_are_named() -> None:
    issue = replace(ISSUE, packages=Packages(("torch_xla=={torch}",)))
    (pair,) = _compared(issues=[issue]).pairs
    assert pair.packages == InstalledPackages(("torch_xla==2.5.1",), ("torch_xla==2.6.0",))


@pytest.mark.parametrize(
    ("after", "group"), [(FAILS, Group.NEW), (PASSES, Group.PASSES_NEW), (UNSURE, Group.NOT_KNOWN_NOW)]
)
def test_an_issue_that_begins_with_the_second_build_is_new_and_no_loss(after: Verdict, group: Group) -> None:
    issue = replace(ISSUE, requires=Requires(Device.CPU, torch=">=2.6"))
    (pair,) = _compared(_cell(after, B.id), issues=[issue]).pairs
    assert (pair.transition, pair.group) == (Transition.APPEARED, group)


@pytest.mark.parametrize("after", [FAILS, PASSES])
def test_what_was_not_run_before_is_neither_lost_nor_gained(after: Verdict) -> None:
    (pair,) = _compared(_cell(after, B.id)).pairs
    assert (pair.group, pair.assurance) == (Group.NOT_KNOWN_BEFORE, Assurance.NOT_KNOWN)


def test_a_pair_rests_on_as_many_runs_as_its_weaker_side() -> None:
    often, once = _seen(FAILS, 3, 3), replace(_seen(PASSES, 0, 1), build=B.id)
    assert [_compared(often, one).pairs[0].runs for one in (once, _cell(UNSURE, B.id))] == [1, 0]
    issue = replace(ISSUE, requires=Requires(Device.CPU, torch=">=2.6"))
    failing = replace(_seen(FAILS, 3, 3), build=B.id)
    (pair,) = _compared(failing, issues=[issue]).pairs
    assert (pair.runs, pair.assurance) == (3, Assurance.MEASURED)  # before there is nothing to know


DOCUMENTED = re.findall(
    r"^\| ([a-z_, ]+) \| [a-z_,; ]*\|", DOCUMENT.read_text().partition("## The groups")[2], re.MULTILINE
)


def test_the_documented_groups_are_the_groups() -> None:
    named = [name.strip() for cell in DOCUMENTED for name in cell.split(",")]
    assert named[1 : len(Group) + 1] == [group.value for group in Group]


# -- what it adds up to ------------------------------------------------------------------------------------------------


def _issues_and_cells(turns: Iterable[tuple[Verdict, Verdict]]) -> tuple[list[Issue], list[Cell]]:
    issues, cells = [], []
    for n, (before, after) in enumerate(turns):
        issues.append(make_issue(f"toy-{n}", workarounds=()))
        cells += [_cell(before, A.id, f"toy-{n}"), _cell(after, B.id, f"toy-{n}")]
    return issues, cells


def test_the_first_sentence_is_the_answer() -> None:
    turns = [(FAILS, PASSES)] * 2 + [(PASSES, FAILS)] * 2 + [(FAILS, FAILS)] * 3 + [(PASSES, PASSES)] * 5
    turns += [(FAILS, UNSURE), (Verdict.NOT_RUN, UNSURE), (FAILS, Verdict.DIFFERENT_FAILURE), (UNSURE, FAILS)]
    turns += [(Verdict.NOT_APPLICABLE, FAILS), (Verdict.NOT_RUN, PASSES)]
    issues, cells = _issues_and_cells(turns)
    helped = {"aot": WorkaroundFinding(E)}
    cells = [replace(cell, workarounds=helped) if cell.issue in {"toy-3", "toy-4", "toy-5"} else cell for cell in cells]
    issues[2] = replace(issues[2], silent=True)
    assert english(sentence(_compared(*cells, issues=issues))) == (
        "From torch 2.5.1 (CUDA 12.4) to torch 2.6.0 (CUDA 12.4) on CPU: 2 newly broken (1 gives wrong numbers without "
        "an error, 1 has a workaround), 2 fixed, 1 fails in new features, 2 not known before, 2 not known there, "
        "1 fails in another way, 3 still fail (2 have a workaround)"
    )


def test_what_was_not_run_before_is_no_failure_of_the_upgrade() -> None:
    """`compare 2.7.1 2.8.0` on a GPU said "10 fail that were not known before"; 2.7.1 had not been run there."""
    issues, cells = _issues_and_cells([(Verdict.NOT_RUN, FAILS)] * 10 + [(PASSES, PASSES)])
    told = english(sentence(_compared(*cells, issues=issues)))
    assert told.endswith(": none newly broken, none fixed, 10 not known before")


def test_a_workaround_that_helps_in_part_is_none() -> None:
    issues, cells = _issues_and_cells([(FAILS, FAILS)])
    partly = [replace(cell, workarounds={"aot": WorkaroundFinding(P)}) for cell in cells]
    assert english(sentence(_compared(*partly, issues=issues))).endswith("1 still fails")


def test_what_is_fixed_and_what_breaks_is_said_even_where_it_is_nothing() -> None:
    issues, cells = _issues_and_cells([(PASSES, PASSES)])
    assert english(sentence(_compared(*cells, issues=issues))).endswith(": none newly broken, none fixed")


def test_groups_stand_in_their_order_and_silent_ones_first_among_them() -> None:
    turns = [(PASSES, PASSES), (FAILS, PASSES), (FAILS, FAILS), (PASSES, FAILS), (PASSES, FAILS), (PASSES, FAILS)]
    issues, cells = _issues_and_cells(turns)
    issues[4] = replace(issues[4], silent=True)
    issues[5] = replace(issues[5], severity=Severity.CRITICAL)
    order = [pair.issue.id for pair in _compared(*cells, issues=issues).pairs]
    assert order == ["toy-4", "toy-5", "toy-3", "toy-1", "toy-2", "toy-0"]


def test_of_what_was_not_known_before_the_failing_stand_first() -> None:
    issues, cells = _issues_and_cells([(Verdict.NOT_RUN, PASSES), (Verdict.NOT_RUN, FAILS)])
    assert [pair.issue.id for pair in _compared(*cells, issues=issues).pairs] == ["toy-1", "toy-0"]


def test_nothing_was_compared_where_no_issue_answers_on_both_builds() -> None:
    assert _compared(_cell(FAILS, A.id)).is_blind
    assert not _compared(_cell(FAILS, A.id), _cell(PASSES, B.id)).is_blind


# -- properties --------------------------------------------------------------------------------------------------------

IDS = [f"toy-{n}" for n in range(4)]
WORLDS = st.dictionaries(
    st.tuples(st.sampled_from(IDS), st.sampled_from([build.id for build in BUILDS])),
    st.sampled_from(Verdict),
    max_size=20,
)


def _world(told: dict[tuple[str, str], Verdict]) -> tuple[list[Issue], list[Cell]]:
    return [make_issue(id_) for id_ in IDS], [_cell(verdict, build, issue) for (issue, build), verdict in told.items()]


@given(WORLDS, st.sampled_from(BUILDS))
def test_against_itself_a_build_differs_in_nothing(told: dict[tuple[str, str], Verdict], build: Build) -> None:
    issues, cells = _world(told)
    compared = _compared(*cells, issues=issues, a=build.id, b=build.id)
    same = {Transition.STILL_OK, Transition.STILL_AFFECTED, Transition.STILL_UNKNOWN, Transition.ABSENT}
    assert {pair.transition for pair in compared.pairs} <= same
    assert all(pair.before == pair.after for pair in compared.pairs)


@given(WORLDS, st.sampled_from(BUILDS), st.sampled_from(BUILDS))
def test_swapping_two_builds_swaps_every_pair(told: dict[tuple[str, str], Verdict], a: Build, b: Build) -> None:
    issues, cells = _world(told)
    there = _compared(*cells, issues=issues, a=a.id, b=b.id)
    back = _compared(*cells, issues=issues, a=b.id, b=a.id)
    by_issue = {pair.issue.id: pair for pair in back.pairs}
    for pair in there.pairs:
        other = by_issue[pair.issue.id]
        assert (other.before, other.after) == (pair.after, pair.before)
        assert other.transition is SWAPPED.get(pair.transition, pair.transition)


@given(WORLDS, st.sampled_from(BUILDS), st.sampled_from(BUILDS))
def test_gained_and_lost_are_said_only_where_both_sides_are_known(
    told: dict[tuple[str, str], Verdict], a: Build, b: Build
) -> None:
    issues, cells = _world(told)
    compared = _compared(*cells, issues=issues, a=a.id, b=b.id)
    for group, was, now in (
        (Group.FIXED, {SideStanding.FAILS, SideStanding.FAILS_DIFFERENTLY}, {SideStanding.PASSES}),
        (Group.NEWLY_BROKEN, {SideStanding.PASSES}, {SideStanding.FAILS, SideStanding.FAILS_DIFFERENTLY}),
    ):
        for pair in compared.of(group):
            assert {pair.before.verdict, pair.after.verdict} <= CONCLUSIVE
            assert {pair.before in cells, pair.after in cells} == {True}
            assert (standing_of(pair.before) in was, standing_of(pair.after) in now) == (True, True)


@given(WORLDS, st.sampled_from(BUILDS), st.sampled_from(BUILDS))
def test_what_is_gained_on_the_way_there_is_lost_on_the_way_back(
    told: dict[tuple[str, str], Verdict], a: Build, b: Build
) -> None:
    issues, cells = _world(told)
    there = _compared(*cells, issues=issues, a=a.id, b=b.id)
    back = _compared(*cells, issues=issues, a=b.id, b=a.id)
    for one, other in ((there, back), (back, there)):
        # To come to take more than it must is a group of its own, and no loss.
        gained = {pair.issue.id for pair in one.of(Group.FIXED) if pair.before.verdict not in EXCESSES}
        assert gained == {pair.issue.id for pair in other.of(Group.NEWLY_BROKEN)}


@given(WORLDS, st.sampled_from(BUILDS), st.sampled_from(BUILDS))
def test_a_pass_that_nobody_knows_of_any_more_makes_nothing_gained(
    told: dict[tuple[str, str], Verdict], a: Build, b: Build
) -> None:
    issues, cells = _world(told)
    full = {pair.issue.id for pair in _compared(*cells, issues=issues, a=a.id, b=b.id).of(Group.FIXED)}
    for gone in (cell for cell in cells if cell.verdict is PASSES):
        rest = [cell for cell in cells if cell is not gone]
        left = {pair.issue.id for pair in _compared(*rest, issues=issues, a=a.id, b=b.id).of(Group.FIXED)}
        assert left <= full


@given(WORLDS, st.sampled_from(BUILDS), st.sampled_from(BUILDS), st.randoms(use_true_random=False))
def test_every_issue_is_counted_once_whatever_their_order(
    told: dict[tuple[str, str], Verdict], a: Build, b: Build, chance: random.Random
) -> None:
    issues, cells = _world(told)
    compared = _compared(*cells, issues=issues, a=a.id, b=b.id)
    shuffled = _compared(*chance.sample(cells, len(cells)), issues=chance.sample(issues, len(issues)), a=a.id, b=b.id)
    assert compared == shuffled
    assert sum(compared.counts.values()) == sum(len(compared.of(group)) for group in Group) == len(IDS)
    assert list(compared.pairs) == sorted(compared.pairs, key=most_severe_first)


@given(WORLDS, st.sampled_from(BUILDS), st.sampled_from(BUILDS))
def test_every_number_of_the_sentence_is_the_size_of_a_group_or_of_a_part_of_it(
    told: dict[tuple[str, str], Verdict], a: Build, b: Build
) -> None:
    issues, cells = _world(told)
    compared = _compared(*cells, issues=issues, a=a.id, b=b.id)
    sizes = {len(compared.of(group)) for group in Group}
    said = english(outcome(compared))
    assert {int(number) for number in re.findall(r"\d+", re.sub(r"\(.*?\)", "", said))} <= sizes
    assert all(int(number) <= max(sizes) for number in re.findall(r"\d+", " ".join(re.findall(r"\(.*?\)", said))))


def test_remarks_on_a_count_stand_behind_it_in_one_pair_of_brackets_in_either_language() -> None:
    remarks = Message("then", first=Message("are_silent", n=2), rest=Message("has_workaround", n=1))
    count = aside(Message("newly_broken", n=3), [remarks])
    assert english(count) == "3 newly broken (2 give wrong numbers without an error, 1 has a workaround)"
    assert re.fullmatch(r"[^()]+\uff08[^()]+\uff0c[^()]+\uff09", as_text(count, Language.CHINESE))
