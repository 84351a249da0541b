"""Bisection over made-up lines: the bound, the honesty of the interval, and what is said where there is none."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from knowngood.domain.errors import BadRequest
from knowngood.domain.message import quoted
from knowngood.domain.verdicts.verdict import Cell, VariantFinding, Verdict
from knowngood.measure.bisection.search import (
    Point,
    Search,
    SearchOutcome,
    SearchResult,
    line_between,
    most_jobs,
    needed_attempts,
    next_step,
    sentences,
)
from tests.make import HARDWARE, make_build

SIGNS = {
    "X": Verdict.AFFECTED,
    ".": Verdict.NOT_AFFECTED,
    "~": Verdict.FLAKY,
    "?": Verdict.INCONCLUSIVE,
    "d": Verdict.DIFFERENT_FAILURE,
    "0": Verdict.NO_BUILD,
    "-": Verdict.NOT_APPLICABLE,
    " ": Verdict.NOT_RUN,
}
BUILDS = [make_build(f"2.{minor}.0+cu124") for minor in range(1, 65)]


def cell(at: int, verdict: Verdict, n: int = 3) -> Cell:
    k = {Verdict.AFFECTED: n, Verdict.FLAKY: 1}.get(verdict, 0)
    finding = VariantFinding("default", verdict, quoted("because"), k, n)
    return Cell("toy-1", BUILDS[at].id, HARDWARE, verdict, quoted(f"because {verdict}"), variants=(finding,))


def point(at: int, sign: str, *, is_open: bool = False, n: int = 3) -> Point:
    return Point(BUILDS[at], cell(at, SIGNS[sign], n), is_open=is_open)


def hidden(row: str, known: Sequence[int] = ()) -> Search:
    """Nothing of the row is known but what is named."""
    return Search(
        tuple(point(at, sign) if at in known else point(at, " ", is_open=True) for at, sign in enumerate(row))
    )


def carried_out(search: Search, truth: str) -> tuple[SearchResult, list[int]]:
    """Ask until there is an answer; every ask reveals one sign of the truth."""
    asked: list[int] = []
    while isinstance(step := next_step(search), int):
        assert step not in asked, "nothing is asked twice"
        assert not search.points[step].is_settled, "nothing is asked that is known"
        asked.append(step)
        points = [*search.points]
        points[step] = point(step, truth[step])
        search = replace(search, points=tuple(points), jobs=search.jobs + 1)
    return step, asked


def intervals(answer: SearchResult) -> list[tuple[int, int]]:
    places = {one.build.id: at for at, one in enumerate(answer.search.points)}
    return [(places[change.before.build.id], places[change.after.build.id]) for change in answer.changes]


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9, 13, 16, 17, 20, 33, 64])
def test_every_single_change_of_a_line_is_found_within_the_bound(n: int) -> None:
    for first_bad in range(1, n):
        for good, bad in (".X", "X."):
            answer, asked = carried_out(hidden(" " * n), good * first_bad + bad * (n - first_bad))
            assert answer.kind is SearchOutcome.FOUND
            assert intervals(answer) == [(first_bad - 1, first_bad)]
            assert len(asked) <= most_jobs(n)


@pytest.mark.parametrize(("n", "most"), [(2, 3), (3, 4), (4, 4), (5, 5), (13, 6), (16, 6), (17, 7), (20, 7)])
def test_the_bound_is_the_logarithm_rounded_up_and_both_ends(n: int, most: int) -> None:
    assert most_jobs(n) == most


ANY_ROW = st.text("X.~?d0-", min_size=2, max_size=40)
_ANYTHING, _FAILS, _PASSES = st.text("X.~?d0-", max_size=10), st.sampled_from("X~"), st.just(".")
# Whatever lies before, between and behind: what is known changes, and changes back.
CHANGED_TWICE: st.SearchStrategy[str] = st.one_of(
    [
        st.tuples(_ANYTHING, first, _ANYTHING, second, _ANYTHING, first, _ANYTHING).map("".join)
        for first, second in ((_FAILS, _PASSES), (_PASSES, _FAILS))
    ]
)


@given(truth=ANY_ROW, data=st.data())
def test_whatever_the_truth_the_bound_holds_and_no_boundary_is_made_up(truth: str, data: st.DataObject) -> None:
    """Monotone or not, with holes anywhere, and with anything known before."""
    known = data.draw(st.sets(st.sampled_from(range(len(truth)))))
    answer, asked = carried_out(hidden(truth, sorted(known)), truth)
    assert len(asked) <= most_jobs(len(truth))
    assert not known & set(asked)
    fails = [{"X": True, "~": True, ".": False}.get(sign) for sign in truth]
    for before, after in intervals(answer):
        assert fails[before] is not None
        assert fails[after] is not None
        assert fails[before] != fails[after], "between its sides the issue came or went"
        for between in range(before + 1, after):
            seen = between in known or between in asked
            assert not seen or fails[between] is None, "what tells is never inside an interval"
    assert (answer.kind is SearchOutcome.FOUND) == (len(answer.changes) == 1)
    assert (answer.kind is SearchOutcome.NOT_MONOTONE) == (len(answer.changes) > 1)
    assert all(sentences(answer))


@given(good=st.integers(1, 30), bad=st.integers(1, 30), is_fixed=st.booleans(), data=st.data())
def test_a_single_change_lies_inside_the_interval_however_many_builds_do_not_tell(
    good: int, bad: int, is_fixed: bool, data: st.DataObject
) -> None:
    row = "X" * good + "." * bad if is_fixed else "." * good + "X" * bad
    holes = data.draw(st.sets(st.sampled_from(range(len(row)))))
    known = data.draw(st.sets(st.sampled_from(range(len(row)))))
    truth = "".join("?" if at in holes else sign for at, sign in enumerate(row))
    answer, _ = carried_out(hidden(truth, sorted(known)), truth)
    assert answer.kind is not SearchOutcome.NOT_MONOTONE
    assume(answer.kind is SearchOutcome.FOUND)
    ((before, after),) = intervals(answer)
    assert before < good <= after


@given(truth=CHANGED_TWICE)
def test_a_second_change_among_what_is_known_is_always_told_and_costs_no_job(truth: str) -> None:
    answer, asked = carried_out(hidden(truth, range(len(truth))), truth)
    assert (answer.kind, asked) == (SearchOutcome.NOT_MONOTONE, [])
    partly, asked = carried_out(hidden(truth, [at for at, sign in enumerate(truth) if sign in "X.~"]), truth)
    assert (partly.kind, asked, intervals(partly)) == (SearchOutcome.NOT_MONOTONE, [], intervals(answer))
    assert "not monotone" in sentences(partly)[0]


@given(truth=ANY_ROW)
def test_a_full_scan_asks_everything_once_and_knows_every_change(truth: str) -> None:
    search = replace(hidden(truth), full=True)
    answer, asked = carried_out(search, truth)
    assert asked == list(range(len(truth)))
    told = [(at, sign in "X~") for at, sign in enumerate(truth) if sign in "X.~"]
    changes = [(one, other) for (one, a), (other, b) in pairwise(told) if a != b]
    assert intervals(answer) == changes


def test_what_is_known_costs_nothing_and_is_not_asked() -> None:
    answer, asked = carried_out(hidden("....XXXX", [0, 3, 4, 7]), "....XXXX")
    assert (intervals(answer), asked) == ([(3, 4)], [])


def test_both_ends_are_asked_even_where_the_change_is_known() -> None:
    _, asked = carried_out(hidden("....XXXX", [3, 4]), "....XXXX")
    assert asked == [0, 7]


@pytest.mark.parametrize(("truth", "word"), [("........", "pass"), ("XXXXXXXX", "fail"), ("..XXXX..", "pass")])
def test_two_ends_that_agree_are_said_to_and_a_full_scan_is_offered(truth: str, word: str) -> None:
    answer, asked = carried_out(hidden(truth), truth)
    assert (answer.kind, asked) == (SearchOutcome.ENDS_AGREE, [0, 7])
    assert sentences(answer)[0].startswith(f"both ends {word} (2.1.0 and 2.8.0)")
    assert "--full asks the 6 builds" in sentences(answer)[0]


def test_where_all_is_known_and_alike_no_scan_is_offered() -> None:
    answer, _ = carried_out(hidden("...", [0, 1, 2]), "...")
    assert "--full" not in sentences(answer)[0]


def test_an_end_that_does_not_tell_is_stepped_inside_of_and_named() -> None:
    answer, asked = carried_out(hidden("?...X0"), "?...X0")
    assert intervals(answer) == [(3, 4)]
    assert asked == [0, 1, 5, 4, 3]
    assert "2.1.0 gives no answer (inconclusive: because inconclusive) outside it" in sentences(answer)
    assert "2.6.0 gives no answer (no_build: because no_build) outside it" in sentences(answer)


def test_a_known_change_is_not_widened_by_asking_around_an_end_that_gives_no_answer() -> None:
    search = hidden(".X", [0, 1])
    open_end = [point(2, " ", is_open=True), point(3, "0")]
    answer, asked = carried_out(Search((*search.points, *open_end)), ".X.0")
    assert (intervals(answer), asked) == ([(0, 1)], [])
    assert "2.3.0 outside it: not asked" in sentences(answer)


def test_what_lies_in_between_and_does_not_tell_makes_an_interval() -> None:
    answer, _ = carried_out(hidden("...?dXXX", [2, 5]), "...?dXXX")
    said = sentences(answer)
    assert said[0] == "breaks in (2.3.0, 2.6.0]: passes on 2.3.0, fails on 2.6.0"
    assert "2.4.0 gives no answer (inconclusive: because inconclusive) in between" in said
    assert "2.5.0 gives no answer (different_failure: because different_failure) in between" in said
    assert not any("first bad" in one for one in said)


def test_a_search_that_runs_out_of_jobs_says_which_builds_it_did_not_ask() -> None:
    truth = "." + "?" * 30 + "X"
    answer, asked = carried_out(hidden(truth), truth)
    assert len(asked) == most_jobs(32) == 7
    assert intervals(answer) == [(0, 31)]
    (said,) = [one for one in sentences(answer) if "not asked" in one]
    assert "for the 7 jobs were used up; the same question goes on from here" in said
    assert said.count(",") == 25


def test_without_two_answers_there_is_nothing_to_find() -> None:
    answer, _ = carried_out(hidden("??.?"), "??.?")
    assert answer.kind is SearchOutcome.CANNOT_SAY
    assert sentences(answer)[0].startswith("fewer than two builds")


def test_the_first_bad_and_the_first_fixed_build_are_named() -> None:
    broke, _ = carried_out(hidden("..XX"), "..XX")
    assert sentences(broke)[1].startswith("first bad build: torch-2.3.0+cu124")
    fixed, _ = carried_out(hidden("XX.."), "XX..")
    assert sentences(fixed)[:2] == (
        "is fixed in (2.2.0, 2.3.0]: fails on 2.2.0, passes on 2.3.0",
        "first fixed build: torch-2.3.0+cu124; no known build lies between the two",
    )


def test_old_evidence_is_asked_anew_where_that_is_possible_and_counts_where_it_is_not() -> None:
    old = [Point(BUILDS[at], cell(at, SIGNS[sign]), is_open=True, is_stale=True) for at, sign in enumerate("..XX")]
    _, asked = carried_out(Search(tuple(old)), "..XX")
    assert sorted(asked) == [0, 1, 2, 3]
    shut = [replace(one, is_open=False) for one in old]
    answer, asked = carried_out(Search(tuple(shut)), "..XX")
    assert (intervals(answer), asked) == ([(1, 2)], [])
    assert any("is old" in one for one in sentences(answer))


def test_old_evidence_of_a_second_change_is_not_hidden() -> None:
    points = [*hidden(".X..", [0, 3]).points]
    points[1] = Point(BUILDS[1], cell(1, Verdict.AFFECTED), is_open=True, is_stale=True)
    answer, asked = carried_out(Search(tuple(points)), "....")
    assert (answer.kind, asked) == (SearchOutcome.NOT_MONOTONE, [])


@pytest.mark.parametrize(
    ("row", "n", "words"),
    [
        (".X", 3, ""),
        (".X", 1, "2.1.0 rests on 1 attempt and 2.2.0 rests on 1 attempt, of 3 that a change asks for"),
        (".~", 3, "2.1.0 rests on 3 attempts and 2.2.0 rests on 3 attempts, of 10 that a change asks for"),
        (".~", 10, "2.2.0 fails only now and then: 29 passes of 2.1.0 would tell it from luck"),
        (".~", 40, "2.2.0 fails only now and then: 119 passes of 2.1.0 would tell it from luck"),
    ],
)
def test_a_change_is_confirmed_by_as_many_attempts_as_the_rules_of_confirming_ask_for(
    row: str, n: int, words: str
) -> None:
    answer = next_step(Search(tuple(point(at, sign, n=n) for at, sign in enumerate(row))))
    assert isinstance(answer, SearchResult)
    assert answer.changes[0].missing == words
    assert needed_attempts(answer.changes[0]) == (10 if "~" in row else 3)


def test_a_line_is_of_one_origin_and_one_python_and_of_tritons_own() -> None:
    twin = make_build("2.2.0+cu124", python="3.12")
    foreign = make_build("2.2.0+cu124", triton="3.9.0")
    other = make_build("2.2.0+cu126", origin="cu126")
    line = line_between([twin, foreign, other, *BUILDS[:4]], BUILDS[2], BUILDS[0])
    assert [build.id for build in line] == [build.id for build in BUILDS[:3]]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (make_build("2.2.0+cu124", python="3.12"), "say --python for both"),
        (make_build("2.2.0+cu126", origin="cu126"), "name two of one origin"),
        (make_build("2.2.0+cu124", triton="3.9.0"), "stands on no line"),
        (BUILDS[0], "name two builds"),
    ],
)
def test_what_is_on_no_line_is_refused(other: object, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        line_between(BUILDS, BUILDS[0], other)  # type: ignore[arg-type]  # the table holds builds alone
