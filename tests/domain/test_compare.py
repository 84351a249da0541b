"""What becomes of an issue between two builds: the whole table of verdict pairs, the pairing of cells, the sentence."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.build import Build
from app.domain.compare import (
    Comparison,
    Group,
    Standing,
    Transition,
    WorkaroundTurn,
    compare,
    family_of,
    gravity,
    passes_needed,
    sentence,
    standing_of,
    transition_of,
    workaround_turn,
    workaround_turns,
)
from app.domain.issue import Device, Issue, Packages, Requires, Severity
from app.domain.verdict import Cell, VariantFinding, Verdict, WorkaroundFinding, WorkaroundVerdict
from tests.make import HARDWARE, NOON, make_build, make_issue

ISSUE = make_issue()
A = make_build("2.5.1+cu124", pinned_triton="3.1.0")
B = make_build("2.6.0+cu124")
A_312 = make_build("2.5.1+cu124", pinned_triton="3.1.0", python="3.12")
B_312 = make_build("2.6.0+cu124", python="3.12")
B_MISMATCHED = make_build("2.6.0+cu124", triton="3.3.0")
BUILDS = (A, B, A_312, B_312, B_MISMATCHED)
NO_CELL = "no cell"

DOCUMENT = Path(__file__).parents[2] / "docs" / "compare.md"


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
    return None if word == NO_CELL else Cell(ISSUE.id, A.id, HARDWARE, Verdict(word), "because")


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
    assert {before for before, _ in fixed} == {"affected", "different_failure"}


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
    return replace(_cell(verdict), variants=(VariantFinding(variant, verdict, "because", k, n),))


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
        return Cell(ISSUE.id, A.id, HARDWARE, Verdict.DIFFERENT_FAILURE, reason)

    moved = other("died by SIGSEGV at 0x7f31aa in line 120"), other("died by SIGSEGV at 0x55e1 in line 133")
    assert transition_of(*moved) is Transition.STILL_AFFECTED
    assert transition_of(other("died by SIGSEGV"), other("ImportError: no name")) is Transition.CHANGED_FAILURE


def test_old_evidence_changes_no_transition_and_is_told() -> None:
    before, after = _cell(Verdict.AFFECTED, A.id), _cell(Verdict.NOT_AFFECTED, B.id)
    years_later = NOON.replace(year=NOON.year + 2)
    families = family_of(A, BUILDS), family_of(B, BUILDS)
    compared = compare([ISSUE], *families, HARDWARE, [before, after], now=years_later)
    assert compared.pairs[0].transition is Transition.FIXED
    assert compared.pairs[0].old == (True, True)
    assert sentence(compared).endswith(": 1 fixed (1 by old evidence), none newly broken")


# -- workarounds -------------------------------------------------------------------------------------------------------

E, I_, U, H, X = (
    WorkaroundVerdict.EFFECTIVE,
    WorkaroundVerdict.INEFFECTIVE,
    WorkaroundVerdict.UNNECESSARY,
    WorkaroundVerdict.HARMFUL,
    WorkaroundVerdict.UNVERIFIED,
)
FAILS, PASSES, UNSURE = Verdict.AFFECTED, Verdict.NOT_AFFECTED, Verdict.INCONCLUSIVE


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
    ],
)
def test_a_workaround_is_followed_from_one_build_to_the_other(
    before: tuple[Verdict, WorkaroundVerdict], after: tuple[Verdict, WorkaroundVerdict], turn: WorkaroundTurn | None
) -> None:
    there, here = (
        replace(_cell(verdict), workarounds={"aot": WorkaroundFinding(one)}) for verdict, one in (before, after)
    )
    assert workaround_turn(there, here, "aot") is turn
    assert workaround_turns(there, here) == ({"aot": turn} if turn else {})


def test_an_issue_that_leaves_the_matrix_makes_no_workaround_needless() -> None:
    cured = replace(_cell(FAILS), workarounds={"aot": WorkaroundFinding(E)})
    assert workaround_turn(cured, None, "aot") is WorkaroundTurn.NO_LONGER_VERIFIED


# -- which cells pair --------------------------------------------------------------------------------------------------


def _cell(verdict: Verdict, build: str = A.id, issue: str = ISSUE.id, hardware: str = HARDWARE) -> Cell:
    measured = NOON if verdict not in {Verdict.NOT_RUN, Verdict.NOT_APPLICABLE} else None
    return Cell(issue, build, hardware, verdict, "because", measured_at=measured)


def _compared(*cells: Cell, issues: Iterable[Issue] = (ISSUE,), a: str = A.id, b: str = B.id) -> Comparison:
    by_id = {build.id: build for build in BUILDS}
    return compare(issues, family_of(by_id[a], BUILDS), family_of(by_id[b], BUILDS), HARDWARE, cells)


def _pythons(compared: Comparison) -> tuple[str, str]:
    (pair,) = compared.pairs
    return pair.before.build, pair.after.build


def test_cells_of_the_python_asked_for_are_paired_first() -> None:
    cells = [_cell(FAILS, A.id), _cell(PASSES, B.id), _cell(FAILS, A_312.id), _cell(FAILS, B_312.id)]
    asked, other = _compared(*cells), _compared(*cells, a=A_312.id, b=B_312.id)
    assert (_pythons(asked), asked.pairs[0].transition) == ((A.id, B.id), Transition.FIXED)
    assert (_pythons(other), other.pairs[0].transition) == ((A_312.id, B_312.id), Transition.STILL_AFFECTED)


def test_another_python_that_says_something_else_is_told_beside_it() -> None:
    cells = [_cell(FAILS, A.id), _cell(PASSES, B.id), _cell(FAILS, A_312.id), _cell(FAILS, B_312.id)]
    (pair,) = _compared(*cells).pairs
    assert [(one.python, one.transition) for one in pair.otherwise] == [("3.12", Transition.STILL_AFFECTED)]


def test_a_python_that_answers_on_both_sides_goes_before_one_that_does_not() -> None:
    cells = [_cell(FAILS, A.id), _cell(UNSURE, B.id), _cell(FAILS, A_312.id), _cell(PASSES, B_312.id)]
    assert _pythons(_compared(*cells)) == (A_312.id, B_312.id)


def test_where_no_python_was_measured_on_both_each_build_speaks_with_the_one_it_has() -> None:
    compared = _compared(_cell(FAILS, A.id), _cell(PASSES, B_312.id))
    assert _pythons(compared) == (A.id, B_312.id)
    assert compared.pairs[0].transition is Transition.FIXED


def test_an_unsure_cell_of_the_same_python_is_not_passed_over_for_a_better_one_of_another() -> None:
    compared = _compared(_cell(FAILS, A.id), _cell(UNSURE, B.id), _cell(PASSES, B_312.id))
    assert compared.pairs[0].transition is Transition.NOW_UNKNOWN


def test_builds_that_name_two_pythons_are_compared_exactly() -> None:
    compared = _compared(_cell(FAILS, A.id), _cell(PASSES, B.id), _cell(FAILS, B_312.id), a=A.id, b=B_312.id)
    assert _pythons(compared) == (A.id, B_312.id)
    assert compared.pairs[0].transition is Transition.STILL_AFFECTED


def test_an_issue_that_cannot_be_on_the_python_asked_for_takes_no_answer_from_another() -> None:
    issue = replace(ISSUE, requires=replace(ISSUE.requires, python=">=3.12"))
    cells = [_cell(FAILS, A_312.id), _cell(PASSES, B_312.id)]
    (pair,) = _compared(*cells, issues=[issue]).pairs
    assert {pair.before.verdict, pair.after.verdict} == {Verdict.NOT_APPLICABLE}
    assert pair.otherwise == ()
    assert _compared(*cells, issues=[issue], a=A_312.id, b=B_312.id).pairs[0].transition is Transition.FIXED


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
    assert pair.packages == (("torch_xla==2.5.1",), ("torch_xla==2.6.0",))


def test_an_issue_that_begins_with_the_second_build_appears() -> None:
    issue = replace(ISSUE, requires=Requires(Device.CPU, torch=">=2.6"))
    (pair,) = _compared(_cell(FAILS, B.id), issues=[issue]).pairs
    assert (pair.transition, pair.group) == (Transition.APPEARED, Group.FAILS_UNSEEN)


# -- what it adds up to ------------------------------------------------------------------------------------------------


def _issues_and_cells(turns: Iterable[tuple[Verdict, Verdict]]) -> tuple[list[Issue], list[Cell]]:
    issues, cells = [], []
    for n, (before, after) in enumerate(turns):
        issues.append(make_issue(f"toy-{n}", workarounds=()))
        cells += [_cell(before, A.id, f"toy-{n}"), _cell(after, B.id, f"toy-{n}")]
    return issues, cells


def test_the_first_sentence_is_the_answer() -> None:
    turns = [(FAILS, PASSES)] * 2 + [(PASSES, FAILS)] + [(FAILS, FAILS)] * 3 + [(PASSES, PASSES)] * 5
    turns += [(FAILS, UNSURE), (Verdict.NOT_RUN, UNSURE), (FAILS, Verdict.DIFFERENT_FAILURE), (UNSURE, FAILS)]
    issues, cells = _issues_and_cells(turns)
    cured = {"aot": WorkaroundFinding(E)}
    cells = [replace(cell, workarounds=cured) if cell.issue in {"toy-3", "toy-4"} else cell for cell in cells]
    issues[2] = replace(issues[2], silent=True)
    assert sentence(_compared(*cells, issues=issues)) == (
        "From torch-2.5.1+cu124 to torch-2.6.0+cu124 on cpu-x86_64: 2 fixed, 1 newly broken (1 gives wrong numbers "
        "without an error), 1 fails that was not known before, 1 fails in another way, 3 still fail (2 have a cure), "
        "2 cannot be said"
    )


def test_what_is_fixed_and_what_breaks_is_said_even_where_it_is_nothing() -> None:
    issues, cells = _issues_and_cells([(PASSES, PASSES)])
    assert sentence(_compared(*cells, issues=issues)).endswith(": none fixed, none newly broken")


def test_the_gravest_stand_first_and_silent_ones_first_among_them() -> None:
    turns = [(PASSES, PASSES), (FAILS, PASSES), (FAILS, FAILS), (PASSES, FAILS), (PASSES, FAILS), (PASSES, FAILS)]
    issues, cells = _issues_and_cells(turns)
    issues[4] = replace(issues[4], silent=True)
    issues[5] = replace(issues[5], severity=Severity.CRITICAL)
    order = [pair.issue.id for pair in _compared(*cells, issues=issues).pairs]
    assert order == ["toy-4", "toy-5", "toy-3", "toy-2", "toy-1", "toy-0"]


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


@settings(deadline=None)
@given(WORLDS, st.sampled_from(BUILDS))
def test_against_itself_a_build_differs_in_nothing(told: dict[tuple[str, str], Verdict], build: Build) -> None:
    issues, cells = _world(told)
    compared = _compared(*cells, issues=issues, a=build.id, b=build.id)
    same = {Transition.STILL_OK, Transition.STILL_AFFECTED, Transition.STILL_UNKNOWN, Transition.ABSENT}
    assert {pair.transition for pair in compared.pairs} <= same
    assert all(pair.before == pair.after for pair in compared.pairs)


@settings(deadline=None)
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


@settings(deadline=None)
@given(WORLDS, st.sampled_from(BUILDS), st.sampled_from(BUILDS))
def test_whatever_is_called_fixed_was_seen_to_pass(told: dict[tuple[str, str], Verdict], a: Build, b: Build) -> None:
    issues, cells = _world(told)
    compared = _compared(*cells, issues=issues, a=a.id, b=b.id)
    for pair in compared.of(Group.FIXED):
        assert pair.after in cells
        assert standing_of(pair.after) is Standing.PASSES
        assert standing_of(pair.before) in {Standing.FAILS, Standing.FAILS_DIFFERENTLY}


@settings(deadline=None)
@given(WORLDS, st.sampled_from(BUILDS), st.sampled_from(BUILDS))
def test_every_issue_is_counted_once_whatever_their_order(
    told: dict[tuple[str, str], Verdict], a: Build, b: Build
) -> None:
    issues, cells = _world(told)
    compared = _compared(*cells, issues=issues, a=a.id, b=b.id)
    turned = _compared(*reversed(cells), issues=reversed(issues), a=a.id, b=b.id)
    assert compared == turned
    assert sum(compared.counts.values()) == sum(len(compared.of(group)) for group in Group) == len(IDS)
    assert list(compared.pairs) == sorted(compared.pairs, key=gravity)
