"""The matrix as values: which columns, every cell filled, what they add up to."""

from datetime import timedelta

import pytest

from app.domain.build import Build
from app.domain.issue import Device, Requires
from app.domain.matrix import Columns, choose_columns, complete, stale_cells, tally
from app.domain.verdict import Cell, Verdict
from tests.make import HARDWARE, NOON, make_build, make_issue

PLAIN = make_build("2.6.0+cu124")
PATCH = make_build("2.7.0+cu126")
NEWER_PATCH = make_build("2.7.1+cu126")
OTHER_INDEX = make_build("2.7.1+cu128", origin="cu128")
MISMATCHED = make_build("2.6.0+cu124", triton="3.3.0")
OTHER_PYTHON = make_build("2.6.0+cu124", python="3.12")
BUILDS = (OTHER_PYTHON, NEWER_PATCH, MISMATCHED, OTHER_INDEX, PATCH, PLAIN)


@pytest.mark.parametrize(
    ("columns", "measured", "chosen"),
    [
        pytest.param(Columns.RELEASES, set(), [PLAIN, PATCH, NEWER_PATCH], id="the plain line, measured or not"),
        pytest.param(
            Columns.RELEASES,
            {OTHER_INDEX.id, MISMATCHED.id, OTHER_PYTHON.id},
            [PLAIN, PATCH, NEWER_PATCH, OTHER_INDEX],
            id="another index's wheel earns its column; a mismatch and another Python never do",
        ),
        pytest.param(Columns.MINORS, set(), [PLAIN, NEWER_PATCH], id="the newest patch of each minor"),
        pytest.param(
            Columns.MINORS, {OTHER_INDEX.id}, [PLAIN, NEWER_PATCH], id="of one patch the wheel of the default index"
        ),
        pytest.param(
            Columns.ALL,
            set(),
            [PLAIN, OTHER_PYTHON, MISMATCHED, PATCH, NEWER_PATCH, OTHER_INDEX],
            id="all, in release order",
        ),
    ],
)
def test_columns_are_those_a_reader_wants(columns: Columns, measured: set[str], chosen: list[Build]) -> None:
    assert choose_columns(BUILDS, measured, columns) == tuple(chosen)


def test_every_cell_of_a_selection_is_there() -> None:
    everywhere, gpu_only = make_issue("toy-1"), make_issue("toy-2", requires=Requires(Device.CUDA))
    stored = Cell("toy-1", PLAIN.id, HARDWARE, Verdict.AFFECTED, "because", NOON)
    foreign = Cell("toy-9", PLAIN.id, HARDWARE, Verdict.AFFECTED, "of no issue asked for", NOON)
    cells = complete([everywhere, gpu_only], [PLAIN, PATCH], [HARDWARE, "cuda-sm_90"], [stored, foreign])
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
    assert "needs a CUDA GPU" in cells["toy-2", PLAIN.id, HARDWARE].reason


def test_a_tally_counts_what_applies_what_was_measured_and_what_gave_no_answer() -> None:
    cells = [
        Cell("a", PLAIN.id, HARDWARE, Verdict.AFFECTED, "", NOON),
        Cell("b", PLAIN.id, HARDWARE, Verdict.INCONCLUSIVE, "", NOON - timedelta(days=200)),
        Cell("c", PLAIN.id, HARDWARE, Verdict.NO_BUILD, "", NOON),
        Cell("d", PLAIN.id, HARDWARE, Verdict.NOT_RUN, ""),
        Cell("e", PLAIN.id, HARDWARE, Verdict.NOT_APPLICABLE, ""),
    ]
    stale = stale_cells(cells, {PLAIN.id: PLAIN}, NOON)
    assert stale == {("b", PLAIN.id, HARDWARE)}
    found = tally(cells, stale)
    assert (found.applicable, found.measured, found.unsure, found.stale, found.newest) == (4, 3, 1, 1, NOON)


def test_nothing_adds_up_to_nothing() -> None:
    assert tally([], frozenset()).newest is None
