"""The matrix as values: which columns, every cell filled, what they add up to."""

from datetime import timedelta

import pytest

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Device, Requires
from knowngood.domain.message import english, quoted
from knowngood.domain.verdicts.matrix import (
    Column,
    Columns,
    choose_columns,
    complete,
    fold,
    rows_of,
    stale_cells,
    tally,
)
from knowngood.domain.verdicts.verdict import Assurance, Cell, Verdict
from tests.domain import given_claims as claims
from tests.domain.given_claims import ROW, known_of, made, store
from tests.make import HARDWARE, NOON, make_build, make_issue

PLAIN = make_build("2.6.0+cu124")
PATCH = make_build("2.7.0+cu126")
NEWER_PATCH = make_build("2.7.1+cu126")
OTHER_INDEX = make_build("2.7.1+cu128", origin="cu128")
MISMATCHED = make_build("2.6.0+cu124", triton="3.3.0")
OTHER_PYTHON = make_build("2.6.0+cu124", python="3.12")
WHEEL = claims.WHEELS[1]
BUILDS = (OTHER_PYTHON, NEWER_PATCH, MISMATCHED, OTHER_INDEX, PATCH, PLAIN)


@pytest.mark.parametrize(
    ("columns", "measured", "chosen"),
    [
        pytest.param(Columns.RELEASES, set(), [PLAIN, PATCH, NEWER_PATCH], id="the plain line, measured or not"),
        pytest.param(
            Columns.RELEASES,
            {OTHER_INDEX.id, MISMATCHED.id},
            [PLAIN, PATCH, NEWER_PATCH, OTHER_INDEX],
            id="another index's wheel earns its column; a mismatch never does",
        ),
        pytest.param(
            Columns.RELEASES,
            {OTHER_PYTHON.id},
            [PLAIN, OTHER_PYTHON, PATCH, NEWER_PATCH],
            id="another Python comes along where it was measured",
        ),
        pytest.param(
            Columns.MEASURED,
            {OTHER_PYTHON.id},
            [PLAIN, OTHER_PYTHON],
            id="a release is measured with whatever Python, and named by the default one",
        ),
        pytest.param(Columns.MEASURED, set(), [PLAIN, PATCH, NEWER_PATCH], id="all while nothing is measured"),
        pytest.param(
            Columns.MINORS, {OTHER_PYTHON.id}, [PLAIN, OTHER_PYTHON, NEWER_PATCH], id="Pythons of the newest patch too"
        ),
        pytest.param(Columns.MINORS, set(), [PLAIN, NEWER_PATCH], id="the newest patch of each minor"),
        pytest.param(
            Columns.MINORS, {OTHER_INDEX.id}, [PLAIN, NEWER_PATCH], id="of one patch the wheel of the default index"
        ),
        pytest.param(
            Columns.ALL,
            {OTHER_PYTHON.id},
            [PLAIN, OTHER_PYTHON, MISMATCHED, PATCH, NEWER_PATCH, OTHER_INDEX],
            id="all, in release order",
        ),
        pytest.param(
            Columns.ALL,
            set(),
            [PLAIN, MISMATCHED, PATCH, NEWER_PATCH, OTHER_INDEX],
            id="a Python that nothing was measured with is no column",
        ),
    ],
)
def test_columns_are_those_a_reader_wants(columns: Columns, measured: set[str], chosen: list[Build]) -> None:
    assert choose_columns(BUILDS, measured, columns) == tuple(chosen)


def test_a_build_whose_catalogue_has_it_with_one_other_python_only_is_a_column_like_any() -> None:
    lone = make_build("2.8.0+cu128", python="3.12")
    for columns in Columns:
        assert choose_columns([PLAIN, lone], set(), columns) == (PLAIN, lone)


FAMILY = tuple(claims.BUILDS[WHEEL, python] for python in ("3.11", "3.10", "3.12"))


def told(issue: str, signs: str, hardware: str = HARDWARE) -> list[Cell]:
    """The cells of an issue on Python 3.11, 3.10 and 3.12; a dot for nothing."""
    return [made(issue, build, sign, hardware) for build, sign in zip(FAMILY, signs, strict=True) if sign != "."]


@pytest.mark.parametrize(
    ("signs", "verdict", "ground"),
    [
        ("o..", Verdict.NOT_AFFECTED, "3.11"),
        ("..o", Verdict.NOT_AFFECTED, "3.12"),
        (".xx", Verdict.AFFECTED, "3.10"),
        ("x.!", Verdict.AFFECTED, "3.11"),
        ("?.o", Verdict.NOT_AFFECTED, "3.12"),
        ("..?", Verdict.INCONCLUSIVE, "3.12"),
        ("...", Verdict.NOT_RUN, "3.11"),
        ("o.x", Verdict.INCONCLUSIVE, "3.11"),
        ("~o.", Verdict.INCONCLUSIVE, "3.11"),
    ],
)
def test_a_wheel_is_told_by_the_python_that_says_most_and_not_known_where_two_contradict(
    signs: str, verdict: Verdict, ground: str
) -> None:
    known = store(told(ROW.id, signs))
    ((cell,),) = rows_of([ROW], [Column(FAMILY)], [HARDWARE], known).values()
    assert (cell.verdict, known.builds[cell.build].python, cell.basis) == (verdict, ground, None)
    assert cell is known.cell(ROW, FAMILY[2].wheel, HARDWARE), "whichever Python names the column"
    assert (english(cell.reason) == "fails on Python 3.12 and passes on Python 3.11") is (signs == "o.x")


def test_what_was_run_on_the_class_outweighs_what_is_inferred_from_the_cpu() -> None:
    row = make_issue("toy-2", requires=Requires(Device.ANY))
    known = claims.carrying(store([*told(row.id, "o.."), *told(row.id, "..x", "cuda-sm_90")], row))
    assert known.cell(row, FAMILY[0], "cuda-sm_90").verdict is Verdict.NOT_AFFECTED
    cell = known.cell(row, FAMILY[0].wheel, "cuda-sm_90")
    assert (cell.build, cell.verdict, cell.basis) == (FAMILY[2].id, Verdict.AFFECTED, None)


@pytest.mark.parametrize("signs", ["o.o", "x.o", ".xo", "x.!", "x.~"])
def test_a_release_has_one_column_whatever_its_pythons_say(signs: str) -> None:
    known = store(told(ROW.id, signs), ROW)
    assert [column.builds for column in fold((*FAMILY, PATCH), [HARDWARE], known)] == [FAMILY, (PATCH,)]


@pytest.mark.parametrize("pairs", [0, 40])
def test_a_column_is_named_by_the_python_that_was_measured_and_shows_that(pairs: int) -> None:
    known = store(told(ROW.id, "..o"), pairs=pairs, smoke=False)
    (column,) = fold(FAMILY, [HARDWARE], known)
    assert column.builds == (FAMILY[2], *FAMILY[:2]), "nothing was run on 3.11"
    (cell,) = rows_of([ROW], [column], [HARDWARE], known)[ROW.id, HARDWARE]
    assert (cell.build, cell.verdict, cell.assurance) == (FAMILY[2].id, Verdict.NOT_AFFECTED, Assurance.MEASURED)


def test_a_column_whose_build_was_not_run_shows_what_is_known_of_its_other_pythons() -> None:
    """On a GPU 3.12 was run for other rows; what needs no GPU is inferred from the CPU, where 3.11 was."""
    known = store(told(ROW.id, "x.."), smoke=False, pairs=0)
    (row,) = rows_of([ROW], [Column((FAMILY[2], FAMILY[0]))], [HARDWARE], known).values()
    assert [(cell.build, cell.verdict) for cell in row] == [(FAMILY[0].id, Verdict.AFFECTED)]


def test_a_python_that_was_measured_on_another_class_names_no_column_here() -> None:
    known = store([*told(ROW.id, "o.."), *told(ROW.id, "..x", "cuda-sm_90")], smoke=False)
    assert [column.head for column in fold(FAMILY, ["cuda-sm_90"], known)] == [FAMILY[2]]
    assert [column.head for column in fold(FAMILY, [HARDWARE], known)] == [FAMILY[0]]


def test_a_row_that_names_a_python_is_told_by_the_pythons_it_is_about() -> None:
    named = make_issue("toy-2", requires=Requires(python=">=3.12"))
    known = store(told(named.id, "..x"), named)
    (column,) = fold(FAMILY, [HARDWARE], known)
    (cell,) = rows_of([named], [column], [HARDWARE], known)[named.id, HARDWARE]
    assert (cell.build, cell.verdict) == (FAMILY[2].id, Verdict.AFFECTED)


def test_a_foreign_triton_and_another_wheel_are_columns_of_their_own() -> None:
    mismatched = make_build(triton="3.3.0", python="3.12")
    wheel = make_build("2.6.0+cu126", origin="cu126", python="3.12")
    assert len(fold((*FAMILY, mismatched, wheel), [HARDWARE], store([]))) == 3


def test_every_cell_of_a_selection_is_there() -> None:
    everywhere, gpu_only = make_issue("toy-1"), make_issue("toy-2", requires=Requires(Device.CUDA))
    stored = Cell("toy-1", PLAIN.id, HARDWARE, Verdict.AFFECTED, quoted("because"), NOON)
    foreign = Cell("toy-9", PLAIN.id, HARDWARE, Verdict.AFFECTED, quoted("of no issue asked for"), NOON)
    known = known_of([stored, foreign], [everywhere, gpu_only], {build.id: build for build in (PLAIN, PATCH)})
    cells = complete([everywhere, gpu_only], [PLAIN, PATCH], [HARDWARE, "cuda-sm_90"], known)
    assert {key: cell.verdict for key, cell in cells.items()} == {
        ("toy-1", PLAIN.id, HARDWARE): Verdict.AFFECTED,
        ("toy-1", PATCH.id, HARDWARE): Verdict.NOT_RUN,
        ("toy-2", PLAIN.id, HARDWARE): Verdict.NOT_APPLICABLE,
        ("toy-2", PATCH.id, HARDWARE): Verdict.NOT_APPLICABLE,
        ("toy-1", PLAIN.id, "cuda-sm_90"): Verdict.NOT_APPLICABLE,
        ("toy-1", PATCH.id, "cuda-sm_90"): Verdict.NOT_APPLICABLE,
        ("toy-2", PLAIN.id, "cuda-sm_90"): Verdict.NOT_RUN,
        ("toy-2", PATCH.id, "cuda-sm_90"): Verdict.NOT_RUN,
    }
    assert "needs a CUDA GPU" in english(cells["toy-2", PLAIN.id, HARDWARE].reason)


def test_a_tally_counts_what_applies_what_was_measured_and_what_gave_no_answer() -> None:
    cells = [
        Cell("a", PLAIN.id, HARDWARE, Verdict.AFFECTED, quoted(""), NOON),
        Cell("b", PLAIN.id, HARDWARE, Verdict.INCONCLUSIVE, quoted(""), NOON - timedelta(days=200)),
        Cell("c", PLAIN.id, HARDWARE, Verdict.NO_BUILD, quoted(""), NOON),
        Cell("d", PLAIN.id, HARDWARE, Verdict.NOT_RUN, quoted("")),
        Cell("e", PLAIN.id, HARDWARE, Verdict.NOT_APPLICABLE, quoted("")),
    ]
    stale = stale_cells(cells, {PLAIN.id: PLAIN}, NOON)
    assert stale == {("b", PLAIN.id, HARDWARE)}
    found = tally(cells, stale)
    assert (found.applicable, found.measured, found.unsure, found.stale, found.newest) == (4, 3, 1, 1, NOON)


def test_nothing_adds_up_to_nothing() -> None:
    assert tally([], frozenset()).newest is None
