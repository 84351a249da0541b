"""The signs of cells where there is text alone: terminals, Markdown. What they are called is the same everywhere."""

from collections.abc import Iterable
from typing import NamedTuple

from knowngood.app.domain.verdicts.verdict import Cell, Verdict, WorkaroundVerdict


class VerdictMark(NamedTuple):
    sign: str
    word: str


MARKS = {
    Verdict.NOT_AFFECTED: VerdictMark("✓", "passes"),
    Verdict.AFFECTED: VerdictMark("✕", "fails"),
    Verdict.DIFFERENT_FAILURE: VerdictMark("≠", "fails differently"),
    Verdict.FLAKY: VerdictMark("~", "flaky"),
    Verdict.INCONCLUSIVE: VerdictMark("?", "cannot say"),
    Verdict.NOT_APPLICABLE: VerdictMark("·", "does not apply"),
    Verdict.NO_BUILD: VerdictMark("⊘", "cannot be built"),
    Verdict.NOT_RUN: VerdictMark("", "not run"),
}
CURED = VerdictMark("✕'", "fails, has a workaround")
PARTIAL = VerdictMark("✕½", "fails, workaround helps in part")
INFERRED = VerdictMark("( )", "inferred from another Python of the same wheel, or from the CPU")


def in_text(verdict: Verdict) -> VerdictMark:
    """Its mark where no table shows by an empty place that nothing was run."""
    mark = MARKS[verdict]
    return mark if mark.sign else VerdictMark("□", mark.word)


def mark_of(cell: Cell) -> VerdictMark:
    """The mark of what was found, without a word on how it is known (`sign_of` has that)."""
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


def legend_of(cells: Iterable[Cell]) -> list[VerdictMark]:
    """The marks of these cells alone, in a fixed order."""
    cells = list(cells)
    used = {mark_of(cell) for cell in cells}
    marks = [mark for mark in (*MARKS.values(), CURED, PARTIAL) if mark in used]
    return [*marks, *([INFERRED] if any(cell.basis for cell in cells) else [])]
