"""The query language: what each condition means, what it costs, and where a mistake is pointed at."""

import random
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue
from knowngood.domain.message import quoted
from knowngood.domain.verdicts.verdict import Cell, WorkaroundFinding, WorkaroundVerdict
from knowngood.query.evaluate import View, columns_left, matching, of_issues
from knowngood.query.fields import FIELDS
from knowngood.query.parser import MOST_OF_CELLS, BadQuery, Query, parse, written
from knowngood.query.search_box import EXAMPLE_MEANINGS
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.query.given_cells import BUILDS, GPU, MIXED, PYTHONS, RICH, TOY, WORDS, cells_of, random_rows
from tests.query.given_queries import random_query


def holds(text: str, *lines: Sequence[Cell], issue: Issue = TOY, builds: Sequence[Build] = BUILDS) -> bool:
    view = View(tuple(builds), NOON + timedelta(days=1))
    return bool(matching(parse(text), [issue], view, lambda _: lines))


#                                               2.5.1 2.6.0 2.7.0 2.7.1 2.8.0 2.9.0
VERDICTS = [
    # one cell
    ("status:affected", "ooxooo", True, "some cell has it"),
    ("status:affected", "oooooo", False, "no cell has it"),
    ("status:affected", "......", False, "nothing was measured"),
    ("status:not_run", "ooooo.", True, "not run is a verdict to ask for"),
    ("verdict:flaky", "oo~ooo", True, "by its other name"),
    ("status:flaky,affected", "ooo~oo", True, "any of several, with a comma"),
    ("status:flaky|affected", "oooxoo", True, "any of several, with a bar"),
    ("status:flaky,affected", "oooooo", False, "none of several"),
    ("STATUS:Affected", "ooxooo", True, "in any case"),
    ("-status:affected", "oooooo", True, "a denial speaks of all cells"),
    ("-status:affected", "oooxoo", False, "one is enough against it"),
    ("-status:affected", "......", True, "what is not known is not said"),
    ("not status:affected", "oooooo", True, "in a word"),
    ("--status:affected", "oooxoo", True, "denied twice"),
    ("status:affected status:flaky", "ox~ooo", False, "no cell has two verdicts"),
    ("(status:affected) (status:flaky)", "ox~ooo", False, "parentheses around one condition change nothing"),
    ("status:affected or status:flaky", "oo~ooo", True, "either"),
    ("status:affected and status:affected", "oxoooo", True, "a written and"),
    ("(status:affected or status:flaky) build:2.7", "oo~ooo", True, "alternatives of the same cell"),
    ("(status:affected or status:flaky) build:2.7", "xooo~o", False, "not of another"),
    ("(status:affected or build:2.7) age:<2d", "...o..", True, "a column and a verdict as alternatives"),
    ("(status:affected or build:2.7) age:<2d", "oo..oo", False, "neither"),
    # columns
    ("build:2.6 status:affected", "oxoooo", True, "on that column"),
    ("build:2.6 status:affected", "xoxxxx", False, "on another"),
    ("torch:2.6 status:affected", "oxoooo", True, "by its other name"),
    ("build:2.7 status:affected", "oooxoo", True, "a minor is all of its patches"),
    ("build:2.7.0 status:affected", "oooxoo", False, "a patch is itself"),
    ("build:2.7.* status:affected", "oooxoo", True, "as PEP 440 writes it"),
    ("build:2 status:affected", "oooxoo", True, "a major"),
    ("build:2.7..2.8 status:affected", "oooxoo", True, "a range"),
    ("build:2.7..2.8 status:affected", "xxooox", False, "outside of a range"),
    ("build:..2.7 status:affected", "oooxoo", True, "up to the last of a line"),
    ("build:..2.7.0 status:affected", "oooxoo", False, "up to a patch"),
    ("build:2.8.. status:affected", "ooooox", True, "an open end"),
    ("build:>=2.8 status:affected", "ooooxo", True, "a comparison"),
    ("build:>2.8 status:affected", "ooooxo", False, "more than the wheel, with its local part too"),
    ("build:<2.6 status:affected", "xooooo", True, "less"),
    ("build:>=2.6,<2.8 status:affected", "ooooxo", False, "both sides"),
    ("build:>=2.6,<2.8 status:affected", "oooxoo", True, "between"),
    ("build:!=2.7.1 status:affected", "oooxoo", False, "but one"),
    ("build:=2.7.1 status:affected", "oooxoo", True, "one sign for two"),
    ("build:~=2.7.0 status:affected", "oooxoo", True, "compatible"),
    ("build:2.7.1+cu126 status:affected", "oooxoo", True, "a version as imported"),
    ("build:torch-2.7.1+cu126 status:affected", "oooxoo", True, "a build's id"),
    ("build:torch-2.7.1+cu128 status:affected", "oooxoo", False, "another id"),
    ('build:"torch 2.7.1 cu126" status:affected', "oooxoo", True, "a build as people write it"),
    ("build:torch==2.7.1 status:affected", "oooxoo", True, "a requirement"),
    ("build:torch-2.7 status:affected", "oooxoo", True, "an id without its variant is a version"),
    ("build:v2.8 status:affected", "oooxoo", False, "another version"),
    ("build:2.6|2.9 status:affected", "ooooox", True, "any of several columns"),
    ("build:2.6 -status:affected", "xoxxxx", True, "a denial within the columns"),
    ("(build:2.6 status:affected) (build:2.8 status:not_affected)", "oxoxoo", True, "two cells"),
    ("(build:2.6 status:affected) or (build:2.8 status:affected)", "ooooxo", True, "each with its columns"),
    ("build:3.0", "oooooo", False, "no such column"),
    ("build:2.6", "......", True, "a column is there, measured or not"),
    ("cuda:12.6 status:affected", "oooxoo", True, "the CUDA of the wheel"),
    ("cuda:cu126 status:affected", "ooooxo", False, "as wheels are tagged"),
    ("cuda:>=12.8 status:affected", "ooooox", True, "CUDA compares"),
    ("cuda:12.4..12.6 status:affected", "ooooxx", False, "CUDA in a range"),
    ("triton:3.3 status:affected", "oooxoo", True, "a line of Triton"),
    ("triton:>=3.4 status:affected", "oooxoo", False, "Triton compares"),
    ("python:3.11 status:affected", "oooxoo", True, "Python"),
    ("python:>=3.12", "oooooo", False, "no such Python"),
    ("mismatched:no status:affected", "oooxoo", True, "no mismatch here"),
    # together
    ("", "......", True, "nothing asked is everything"),
    ("  ", "......", True, "blanks are nothing"),
]


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [pytest.param(text, line, expected, id=f"{text} [{line}] {why}") for text, line, expected, why in VERDICTS],
)
def test_a_row_of_verdicts_is_selected_or_not(text: str, line: str, *, expected: bool) -> None:
    assert holds(text, cells_of(TOY, BUILDS, line)) is expected


ISSUE_FIELDS = [
    ("bmm", True),
    ("BMM", True),
    ("numbers bmm", True),
    ('"wrong numbers"', True),
    ('"numbers wrong"', False),
    ("154771", True),
    ("inductor", True),
    ("结果", True),
    ("product", False),
    ("bmm nothing", False),
    ("bmm or nothing", True),
    ("-nothing", True),
    ("-bmm", False),
    ("c++", True),
    ("aten::bmm", False),
    ('"or"', True),
    ('"and"', False),
    ('"gives wrong"', True),
    ("id:154771", True),
    ("id:pytorch", True),
    ("id:=154771", False),
    ("id:=pytorch-154771", True),
    ("id:fla|pytorch", True),
    ("title:wrong", True),
    ("title:错误", True),
    ("title:inductor", False),
    ("summary:matrices", True),
    ("summary:bmm", False),
    ("component:inductor", True),
    ('component:"=inductor c++"', True),
    ("component:=inductor", False),
    ('component:Dynamo|"Inductor C"', True),
    ("link:issues/154771", True),
    ('link:"the fix"', True),
    ("link:gitlab", False),
    ("link:https://github.com/pytorch/pytorch/issues/154771", True),
    ("package:transformers", True),
    ("package:einops", True),
    ("package:flash", False),
    ("workaround:aot", True),
    ("workaround:none", False),
    ("culprit:torch", True),
    ("culprit:triton", False),
    ("culprit:triton,torch", True),
    ("-culprit:triton", True),
    ("severity:high", True),
    ("severity:>=medium", True),
    ("severity:>high", False),
    ("severity:<=high", True),
    ("severity:<high", False),
    ("severity:low,critical", False),
    ("silent:yes", True),
    ("silent:no", False),
    ("kind:bug", True),
    ("kind:usage", False),
    ("fidelity:reduced", True),
    ("fidelity:re-created", False),
    ("device:cpu", True),
    ("device:cuda", False),
    ("signature:wrong_result", True),
    ("signature:hang", False),
    ("upstream:closed", True),
    ("upstream:open,unknown", False),
    ("exercises:inductor_cpp", True),
    ("exercises:dynamo_graph", False),
    ("exercises:operator:aten::bmm", True),
    ("exercises:operator", True),
    ("exercises:operator:aten::mm", False),
    ("exercises:eager|inductor_cpp", True),
    ("has:workaround", True),
    ("has:report", True),
    ("has:fix", True),
    ("has:evidence", False),
    ("has:claim", True),
    ("has:package", True),
    ("has:variant", True),
    ("default:yes", True),
    ("default:no", False),
    ("silent:yes -(kind:usage or culprit:cuda)", True),
    ("silent:no or severity:high kind:bug", True),
]


@pytest.mark.parametrize(("text", "expected"), ISSUE_FIELDS)
def test_an_issue_is_selected_by_what_it_says(text: str, *, expected: bool) -> None:
    assert holds(text, issue=RICH) is expected
    assert of_issues(parse(text))(RICH) is expected


def test_an_issue_without_anything_has_nothing() -> None:
    bare = make_issue(workarounds=(), links=(), title="t")
    for word in FIELDS["has"].words:
        assert not holds(f"has:{word}", issue=bare)
    assert holds("upstream:unknown default:no", issue=bare)


def cell(verdict: str, *, days: float | None = 0.5, cures: Sequence[str] = (), hardware: str = HARDWARE) -> Cell:
    """Measured so many days ago, with workarounds of these verdicts."""
    measured = None if days is None else NOON + timedelta(days=1) - timedelta(days=days)
    found = {f"w{at}": WorkaroundFinding(WorkaroundVerdict(word)) for at, word in enumerate(cures)}
    return Cell(
        TOY.id, BUILDS[0].id, hardware, WORDS[verdict], quoted("3 of 3 attempts passed"), measured, workarounds=found
    )


CELLS = [
    ("age:<1d", cell("o"), True),
    ("age:<12h", cell("o"), False),
    ("age:<=12h", cell("o"), True),
    ("age:>=12h", cell("o"), True),
    ("age:>12h", cell("o"), False),
    ("age:>90d", cell("o", days=91), True),
    ("age:<90d", cell("o", days=91), False),
    ("age:>13w", cell("o", days=92), True),
    ("age:>0h", cell(".", days=None), False),
    ("age:<9999w", cell(".", days=None), False),
    ("-age:<90d", cell(".", days=None), True),
    ("age:<1d|>2d", cell("o", days=3), True),
    ("stale:yes", cell("o", days=181), True),
    ("stale:yes", cell("o", days=179), False),
    ("stale:no", cell("o"), True),
    ("stale:no", cell(".", days=None), False),
    ("stale:yes", cell(".", days=None), False),
    ("cure:effective", cell("x", cures=["ineffective", "effective"]), True),
    ("cure:ineffective", cell("x", cures=["ineffective"]), True),
    ("cure:effective", cell("x", cures=["ineffective"]), False),
    ("cure:none", cell("x", cures=["ineffective"]), True),
    ("cure:none", cell("x", cures=["effective"]), False),
    ("cure:none", cell("~"), True),
    ("cure:none", cell("o"), False),
    ("cure:none", cell("?"), False),
    *(
        (query, cell("x", cures=cures), holds)
        for cures, untried, not_found in (
            (["ineffective", "unverified"], True, False),
            (["partial", "unverified"], True, False),
            (["effective", "unverified"], False, False),
            (["ineffective", "harmful"], False, True),
        )
        for query, holds in (("cure:untried", untried), ("cure:not_found", not_found))
    ),
    ("cure:untried", cell("o", cures=["unverified"]), False),
    ("cure:not_found", cell("?", cures=["ineffective"]), False),
    ("reported:yes", cell("x"), False),
    ("reported:no", cell("x"), True),
    ("reported:no", cell("."), False),
    ("cure:harmful", cell("o", cures=["harmful"]), True),
    ("cure:unnecessary,unverified", cell("o", cures=["unverified"]), True),
    ("cure:effective", cell("?", cures=["effective"]), False),
    ("status:affected cure:none age:<1d", cell("x"), True),
    ("status:affected cure:none age:>1d", cell("x"), False),
    ("hardware:cpu", cell("o"), True),
    ("hardware:cuda", cell("o"), False),
    ("hardware:=cpu", cell("o"), False),
    (f"hardware:={HARDWARE}", cell("o"), True),
    ("hardware:H100", cell("o", hardware="cuda-sm_90"), True),
    ("hardware:hopper", cell("o", hardware="cuda-sm_90"), True),
    ("hardware:gpu", cell("o", hardware="cuda-sm_90"), True),
    ("hardware:A100", cell("o", hardware="cuda-sm_90"), False),
    ("hardware:H100", cell("o"), False),
    ("reason:attempts", cell("o"), True),
    ('reason:"control failed"', cell("o"), False),
    ('reason:"=3 of 3 attempts passed"', cell("o"), True),
]


@pytest.mark.parametrize(("text", "one", "expected"), CELLS)
def test_a_cell_is_found_by_what_was_measured(text: str, one: Cell, *, expected: bool) -> None:
    assert holds(text, [one], builds=BUILDS[:1]) is expected


def test_what_depends_on_the_time_is_asked_anew() -> None:
    one, query, days = cell("o", days=100), parse("age:<90d"), (1, -20, 1)
    views = [View(BUILDS[:1], NOON + timedelta(days=day)) for day in days]
    assert [bool(matching(query, [TOY], view, lambda _: [[one]])) for view in views] == [False, True, False]


def test_conditions_side_by_side_are_of_one_cell() -> None:
    old, fresh = cell("x", days=100), cell("o", days=1)
    assert not holds("status:affected age:<90d", [old, fresh], builds=BUILDS[:2])
    assert holds("(status:affected age:>90d) (status:not_affected age:<90d)", [old, fresh], builds=BUILDS[:2])


def test_a_denial_is_of_all_cells() -> None:
    old, fresh = cell("x", days=200), cell("x", days=1)
    assert not holds("status:affected -stale:yes", [old, fresh], builds=BUILDS[:2])
    assert holds("status:affected stale:no", [old, fresh], builds=BUILDS[:2])


# -- Pythons, hardware, builds off the line ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("status:affected", "oox", True),
        ("status:not_run", "o..", False),
        ("status:not_run", "...", True),
        ("status:inconclusive", "oo?", False),
        ("python:3.12 status:not_run", "o..", True),
        ("python:3.12 status:affected", "xo.", False),
    ],
)
def test_the_pythons_of_a_build_are_one_cell_while_they_agree(text: str, line: str, *, expected: bool) -> None:
    assert holds(text, cells_of(TOY, PYTHONS, line), builds=PYTHONS) is expected


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("mismatched:yes status:not_affected", "x..o.", True),
        ("triton:none status:not_affected", "x...o", True),
        ("cuda:none status:not_affected", "x...o", True),
        ("cuda:cpu status:not_affected", "o...x", False),
        ("build:torch-2.6.0+cu124~triton-3.3.0 status:not_affected", "x..o.", True),
        ("build:torch-2.6.0+cu124~py312 status:not_affected", "xo...", True),
        ("triton:3.3 status:not_affected", "x..o.", True),
    ],
)
def test_builds_off_the_line_are_columns(text: str, line: str, *, expected: bool) -> None:
    assert holds(text, cells_of(TOY, MIXED, line), builds=MIXED) is expected


def test_several_classes_are_looked_at_together() -> None:
    cpu, gpu = cells_of(TOY, BUILDS, "oooooo"), cells_of(TOY, BUILDS, "ooxxoo", GPU)
    assert holds("status:affected", cpu, gpu)
    assert holds("hardware:cuda status:affected", cpu, gpu)
    assert not holds("hardware:cpu status:affected", cpu, gpu)
    assert not holds("-status:affected", cpu, gpu)


NIGHTLY = make_build("2.8.0.dev20250401+cu128", pinned_triton="3.3.0")


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("2.8..", False),
        ("<2.8", False),
        (">=2.8", False),
        ("2.8", True),
        ("..2.8", True),
        ("2.7..2.8", True),
        ("..2.7", False),
        ("2.8.0.dev20250401", True),
        (">2.7", True),
        ("2.8.0.dev20250402", False),
        ("2.8.0.dev20250101..", True),
    ],
)
def test_a_nightly_comes_before_its_release(place: str, *, expected: bool) -> None:
    assert holds(f"build:{place}", cells_of(TOY, [NIGHTLY], "o"), builds=[NIGHTLY]) is expected


# -- columns -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("", 6),
        ("bmm status:affected", 6),
        ("build:2.7", 2),
        ("build:2.7 status:affected", 2),
        ("build:2.7 or build:2.8", 3),
        ("build:2.7 or silent:yes", 6),
        ("(build:2.7 status:affected) or silent:yes", 6),
        ("-build:2.7", 4),
        ("cuda:12.6 build:2.7.1", 1),
        ("(build:2.7 or build:2.8) -triton:3.4", 2),
        ("(build:2.7 status:affected) (build:2.8 status:flaky)", 6),
    ],
)
def test_conditions_on_columns_at_the_top_narrow_what_is_shown(text: str, left: int) -> None:
    assert len(columns_left(parse(text), BUILDS)) == left


def test_a_query_that_leaves_no_column_points_at_the_condition() -> None:
    with pytest.raises(BadQuery, match=r"no column is left by build:>=3.*from 2.5.1 to 2.9.0") as refused:
        columns_left(parse("bmm build:>=3"), BUILDS)
    assert (refused.value.column, refused.value.length) == (5, 9)
    assert columns_left(parse("build:>=3"), ()) == ()


# -- mistakes ----------------------------------------------------------------------------------------------------------

MISTAKES = [
    # text, column, length, what is found, nearest
    ("componnt:x", 1, 8, 'no field "componnt"', "component"),
    ("bmm satus:affected", 5, 5, 'no field "satus"', "status"),
    ("error: it fails", 1, 5, 'no field "error"', ""),
    ("status:fails", 8, 5, 'never "fails"', "affected"),
    ("status:passes", 8, 6, 'never "passes"', "not_affected"),
    ("status:flakey", 8, 6, 'never "flakey"', "flaky"),
    ("status:affected,bogus", 17, 5, 'never "bogus"', ""),
    ("status:affected|", 17, 1, "an empty value", ""),
    ("status:", 1, 7, "says nothing", ""),
    ("status: affected", 1, 7, "says nothing", ""),
    ("(status:)", 2, 7, "says nothing", ""),
    ("silent:maybe", 8, 5, 'never "maybe"', ""),
    ("severity:>bad", 10, 4, 'never ">bad"', ""),
    ("severity:>=hihg", 10, 6, 'never ">=hihg"', "high"),
    ("culprit:tirton", 9, 6, 'never "tirton"', "triton"),
    ("exercises:inductor", 11, 8, "never", "inductor_cpp"),
    ("component:=", 11, 1, 'never "="', ""),
    ('component:""', 11, 2, "an empty value", ""),
    ("age:90d", 5, 3, 'never "90d"', ""),
    ("age:<90", 5, 3, 'never "<90"', ""),
    ("age:<90m", 5, 4, 'never "<90m"', ""),
    ("age:<99999d", 5, 7, "never", ""),
    ("build:2.x", 7, 3, 'never "2.x"', ""),
    ("build:..", 7, 2, 'never ".."', ""),
    ("build:2.6..x", 7, 6, "never", ""),
    ("build:>=2.6,x", 7, 7, "never", ""),
    ("build:===2.6", 7, 6, "never", ""),
    ("build:~=2", 7, 3, "never", ""),
    ("build:torch-2.6~cheese", 7, 16, "never", ""),
    ("build:2.6.0~py312", 7, 11, "never", ""),
    ("cuda:old", 6, 3, 'never "old"', ""),
    ("python:", 1, 7, "says nothing", ""),
    ("python:none", 8, 4, "never", ""),
    ("build:>=2.6.0+cu124", 7, 13, "never", ""),
    ("build:2.6.0+cu124..", 7, 13, "never", ""),
    ("(bmm", 1, 1, "never closed", ""),
    ("(bmm or (x)", 1, 1, "never closed", ""),
    ("bmm)", 4, 1, "closes nothing", ""),
    ("()", 1, 2, "empty pair", ""),
    ('"bmm', 1, 1, "never closed", ""),
    ('bmm"x', 4, 1, "never closed", ""),
    ('""', 1, 2, "empty text", ""),
    ("or bmm", 1, 2, "nothing stands before", ""),
    ("bmm or", 7, 0, "ends here", ""),
    ("bmm or or x", 8, 2, "nothing stands before", ""),
    ("bmm and and x", 9, 3, "nothing stands before", ""),
    ("not", 4, 0, "ends here", ""),
    ("bmm -", 6, 0, "ends here", ""),
    ("(or)", 2, 2, "nothing stands before", ""),
    ("fn(x)", 3, 1, "middle of a word", ""),
    ("all(2.8..):not_affected", 1, 3, 'the quantifier "all" is gone; expected conditions on one cell', ""),
    ("bmm none(2.8..):affected", 5, 4, 'the quantifier "none" is gone; expected a denial', ""),
    ("-exists(2.8..):affected", 2, 6, 'the quantifier "exists" is gone; expected its conditions side by side', ""),
    ("COUNT(affected):>=3", 1, 5, 'the quantifier "count" is gone', ""),
    ("(seq(affected,not_affected))", 2, 3, 'the quantifier "seq" is gone', ""),
    (' {"status": "affected"}', 2, 1, "queries as JSON are gone; expected a query as text", ""),
    (f"id:{'|'.join('x' * 201)}", 1, 404, "too many conditions", ""),
    ("age:<1d " * 41, 321, 7, "too many conditions on cells; expected at most 40", ""),
    (f"-reason:{'|'.join('x' * 41)}", 2, 88, "too many conditions on cells", ""),
    ("(" * 21 + "x" + ")" * 21, 21, 1, "nested too deeply", ""),
    ("-" * 21 + "x", 21, 1, "nested too deeply", ""),
    ("(" * 1999, 21, 1, "nested too deeply", ""),
    ("not " * 100 + "x", 81, 1, "nested too deeply", ""),
    ("x " * 201, 401, 1, "too many conditions", ""),
    ("x" * 2001, 2001, 1, "2,001 characters", ""),
    (f"id:{'x' * 201}", 4, 201, "201 characters", ""),
    ("bm\0m", 3, 1, "U+0000", ""),
    ("bmm \ud800", 5, 1, "U+D800", ""),
    ("\x1b[31m", 1, 1, "U+001B", ""),
]


@pytest.mark.parametrize(
    ("text", "column", "length", "found", "nearest"), [pytest.param(*row, id=ascii(row[0])[:60]) for row in MISTAKES]
)
def test_a_mistake_is_pointed_at(text: str, column: int, length: int, found: str, nearest: str) -> None:
    with pytest.raises(BadQuery) as refused:
        parse(text)
    error = refused.value
    assert (error.column, error.length) == (column, length)
    assert found in str(error)
    assert error.nearest == nearest
    assert str(error).startswith(f"column {column}: ")


def test_what_is_just_not_too_much_is_read() -> None:
    for text in ("(" * 20 + "x" + ")" * 20, "-" * 20 + "x", "x " * 200, "x" * 2000, f"id:{'x' * 200}", "age:<1d " * 40):
        parse(text)


def test_a_mended_mistake_can_be_read() -> None:
    for text, column, length, _, nearest in MISTAKES:
        if nearest and not text.startswith(("severity:>=", "exercises")):
            parse(f"{text[: column - 1]}{nearest}{text[column - 1 + length :]}")


# -- writing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("  bmm   STRIDE ", "bmm STRIDE"),
        ("a AND b", "a b"),
        ("NOT a OR b", "-a or b"),
        ("((a))", "a"),
        ("(a b) or c", "a b or c"),
        ("(a or b) c", "(a or b) c"),
        ("a (b c)", "a (b c)"),
        ("-(a b)", "-(a b)"),
        ('"bmm"', "bmm"),
        ('"{x}"', '"{x}"'),
        ('"or" "-x" "a:b" "a b"', '"or" "-x" "a:b" "a b"'),
        (r'"say \"x\" \\"', r'"say \"x\" \\"'),
        ("verdict:Affected,FLAKY,affected", "status:affected|flaky"),
        ("torch:=2.6", "build:==2.6"),
        ("build:2.6.*", "build:2.6"),
        ('build:">= 2.6, < 2.8"', "build:>=2.6,<2.8"),
        ('build:"torch-2.6 cu124"', "build:torch-2.6+cu124"),
        ('build:"torch 2.6 cu124"', "build:2.6+cu124"),
        ("build:2.6+cu124~py312", "build:torch-2.6+cu124~py312"),
        ("build:torch==2.6.0", "build:2.6.0"),
        ("build:==2.6.*", "build:==2.6.*"),
        ("age:<090d", "age:<90d"),
        ("cuda:CPU|cu118", "cuda:none|11.8"),
        ('component:"Inductor C++"|x', 'component:"Inductor C++"|x'),
        ('title:"a|b"|c', 'title:"a|b"|c'),
        ("", ""),
    ],
)
def test_each_query_has_one_way_of_writing(text: str, canonical: str) -> None:
    query = parse(text)
    assert written(query) == canonical
    assert parse(canonical) == query


def selected(query: Query, seed: int) -> list[str]:
    issues, rows, builds = random_rows(seed)
    return [one.id for one in matching(query, issues, View(builds, NOON), lambda issue: rows[issue.id])]


def test_every_random_query_reads_back_from_its_text() -> None:
    chance = random.Random(20261121)  # noqa: S311 - a seeded choice
    for _ in range(2000):
        query = random_query(chance)
        assert parse(written(query)) == query
        assert written(parse(written(query))) == written(query)


PIECES = [*'()":|,-=<>. \\~', *"abx269", "or ", "not ", "status:", "build:", "all(", "{", "affected", "\u3000"]
PIECES += ["python:", "triton:", "none", "..", "+cu124", ".dev1", "cuda:", "age:", "cure:", "count("]
SIGNS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


def query_or_mistake(text: str) -> Query | BadQuery:
    try:
        return parse(text)
    except BadQuery as mistake:
        return mistake


@given(SIGNS | st.text(max_size=40))
def test_any_text_is_a_query_or_is_pointed_at(text: str) -> None:
    query = query_or_mistake(text)
    if isinstance(query, BadQuery):
        assert 1 <= query.column <= len(text) + 1
        assert query.column - 1 + query.length <= max(len(text), query.column)
        return
    assert parse(written(query)) == query
    assert len(selected(query, 1)) <= 12


def test_a_denied_condition_on_issues_is_the_rest() -> None:
    every = {f"toy-{n}" for n in range(12)}
    for text in (
        "silent:yes",
        "component:dynamo",
        "status:flaky age:<90d",
    ):
        assert set(selected(parse(f"-({text})"), 3)) == every - set(selected(parse(text), 3))


# -- what readers are told ---------------------------------------------------------------------------------------------

GUIDE = Path(__file__).parents[2] / "docs" / "query.md"


def rows_below(head: str) -> list[list[str]]:
    """The rows of the table whose first line begins with `head`."""
    lines = GUIDE.read_text(encoding="utf-8").split(f"\n{head}")[1].splitlines()[2:]
    table = lines[: next(at for at, line in enumerate(lines) if not line.startswith("|"))]
    return [
        [part.strip().replace("\\|", "|") for part in line.replace("\\|", "\0").strip("|").split("|")] for line in table
    ]


def test_the_guides_examples_select_what_it_says() -> None:
    table = [[one.replace("\0", "|") for one in row] for row in rows_below("| issue | title |")]
    builds = tuple(
        make_build(torch) for torch in ("2.5.1+cu124", "2.6.0+cu124", "2.7.1+cu126", "2.8.0+cu128", "2.9.0+cu130")
    )
    signs = {verdict.value: sign for sign, verdict in WORDS.items()}
    issues = [
        make_issue(id_, title=title, component=component, silent=silent == "yes")
        for id_, title, component, silent, *_ in table
    ]
    lines = {
        row[0]: [cells_of(issue, builds, "".join(signs[word] for word in row[4:]))]
        for issue, row in zip(issues, table, strict=True)
    }
    examples = [[one.replace("\0", "|") for one in row] for row in rows_below("| query | selects |")]
    assert len(examples) >= 14
    for query, expected, _ in examples:
        found = matching(parse(query.strip("`")), issues, View(builds, NOON), lambda issue: lines[issue.id])
        assert ", ".join(issue.id for issue in found) == expected, query


def test_the_guide_tells_of_every_field_and_word() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for field in FIELDS.values():
        assert f"`{field.name}:`" in text
        for word in field.words:
            assert f"`{word}`" in text, (field.name, word)


def test_the_examples_beside_the_box_can_be_asked() -> None:
    assert len(EXAMPLE_MEANINGS) == 7
    for example in EXAMPLE_MEANINGS:
        assert parse(written(parse(example))) == parse(example)


# -- what a query costs ------------------------------------------------------------------------------------------------

WORST = [
    "-status:no_build",
    "-age:>999w",
    "-reason:zz",
    "-cure:harmful",
    "-hardware:zz",
    f"{'-' * 19}age:>999w",
    "age:<999w or",
    "(age:>999w or reason:zz)",
    "-(build:>=0 age:<999w reason:zz)",
    "(-(age:<999w) or -(age:<999w))",
    "reason:*a*a*a*a*",
]
STEPS_PER_CELL = 12


def steps_of(text: str) -> tuple[int, int]:
    """The calls that a query takes of random rows, and how many cells those are."""
    issues, rows, builds = random_rows(1)
    query, steps = parse(text), 0

    def count(_frame: FrameType, event: str, _about: object) -> None:
        nonlocal steps
        steps += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        matching(query, issues, View(builds, NOON), lambda issue: rows[issue.id])
    finally:
        sys.setprofile(None)
    return steps, sum(len(line) for lines in rows.values() for line in lines)


def longest(part: str) -> str:
    """The condition, repeated as often as a query takes it."""
    times = 1
    while not isinstance(query_or_mistake(repeated(part, times + 1)), BadQuery):
        times += 1
    return repeated(part, times)


def repeated(part: str, times: int) -> str:
    return " ".join([part] * times).removesuffix(" or")


@pytest.mark.parametrize("part", WORST)
def test_the_worst_query_takes_some_steps_of_a_cell_for_each_condition(part: str) -> None:
    text = longest(part)
    steps, cells = steps_of(text)
    assert steps < STEPS_PER_CELL * cells * MOST_OF_CELLS, text


@pytest.mark.parametrize("part", WORST)
def test_steps_grow_no_faster_than_a_query_does(part: str) -> None:
    few, _ = steps_of(repeated(part, 5))
    many, _ = steps_of(repeated(part, 10))
    assert many < 2.2 * few
