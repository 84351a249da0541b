"""The matrix as a terminal shows it."""

import io

from rich.console import Console

from app.domain.matrix import complete
from app.domain.verdict import Cell, Verdict
from app.terminal import print_matrix
from tests.make import HARDWARE, NOON, make_build, make_issue

PLAIN, TWIN, NEXT = make_build(), make_build(python="3.12"), make_build("2.7.0+cu126")
ISSUE = make_issue("toy-1")


def printed(*found: tuple[str, Verdict]) -> list[list[str]]:
    """The words of each line."""
    stored = [Cell(ISSUE.id, build, HARDWARE, verdict, "because", NOON) for build, verdict in found]
    builds = (PLAIN, TWIN, NEXT)
    out = io.StringIO()
    cells = complete([ISSUE], builds, [HARDWARE], stored)
    print_matrix(Console(file=out, width=120), [ISSUE], builds, HARDWARE, cells)
    return [line.split() for line in out.getvalue().splitlines()]


def test_pythons_share_a_column_where_they_agree() -> None:
    lines = printed((TWIN.id, Verdict.AFFECTED), (NEXT.id, Verdict.NOT_AFFECTED))
    assert lines[1:4] == [
        ["2.6.0", "2.7.0"],
        ["issue", "+cu124", "+cu126", "history"],
        ["toy-1", "✕", "✓", "fails", "up", "to", "2.6.0,", "fixed", "in", "(2.6.0,", "2.7.0]"],
    ]
    assert lines[-1] == ["✓", "passes", "✕", "fails"]


def test_pythons_that_disagree_have_a_column_each() -> None:
    lines = printed((PLAIN.id, Verdict.NOT_AFFECTED), (TWIN.id, Verdict.AFFECTED))
    assert lines[2:5] == [
        ["2.6.0", "+cu124", "2.7.0"],
        ["issue", "+cu124", "~py312", "+cu126", "history"],
        ["toy-1", "✓", "✕", "Pythons", "disagree", "on", "1", "release"],
    ]
