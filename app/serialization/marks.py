"""The signs of cells where there is text alone: terminals, Markdown. What they are called is the same everywhere."""

from collections.abc import Iterable
from typing import NamedTuple

from knowngood.app.domain.verdicts.verdict import Cell, Verdict, WorkaroundVerdict


class Mark(NamedTuple):
    sign: str
    word: str


MARKS = {
    Verdict.NOT_AFFECTED: Mark("✓", "passes"),
    Verdict.AFFECTED: Mark("✕", "fails"),
    Verdict.DIFFERENT_FAILURE: Mark("≠", "fails differently"),
    Verdict.FLAKY: Mark("~", "flaky"),
    Verdict.INCONCLUSIVE: Mark("?", "cannot say"),
    Verdict.NOT_APPLICABLE: Mark("·", "does not apply"),
    Verdict.NO_BUILD: Mark("⊘", "cannot be built"),
    Verdict.NOT_RUN: Mark("", "not run"),
}
CURED = Mark("✕'", "fails, has a workaround")
PARTIAL = Mark("✕½", "fails, workaround helps in part")
INFERRED = Mark("( )", "inferred from another Python of the same wheel, or from the CPU")


def in_text(verdict: Verdict) -> Mark:
    """Its mark where no table shows by an empty place that nothing was run."""
    mark = MARKS[verdict]
    return mark if mark.sign else Mark("□", mark.word)


def mark_of(cell: Cell) -> Mark:
    """What was found, without a word on how it is known (`sign_of` has that)."""
    if cell.verdict is Verdict.AFFECTED:
        found = {one.verdict for one in cell.workarounds.values()}
        if WorkaroundVerdict.EFFECTIVE in found:
            return CURED
        if WorkaroundVerdict.PARTIAL in found:
            return PARTIAL
    return MARKS[cell.verdict]


def sign_of(cell: Cell) -> str:
    """`✕`, and `(✕)` where it is inferred."""
    sign = mark_of(cell).sign
    return f"({sign})" if cell.basis else sign


def legend_of(cells: Iterable[Cell]) -> list[Mark]:
    """The marks of these cells alone, in a fixed order."""
    cells = list(cells)
    used = {mark_of(cell) for cell in cells}
    marks = [mark for mark in (*MARKS.values(), CURED, PARTIAL) if mark in used]
    return [*marks, *([INFERRED] if any(cell.basis for cell in cells) else [])]
