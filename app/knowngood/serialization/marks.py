"""Symbols of cells where there is text alone: terminals, Markdown."""

from collections.abc import Iterable
from typing import NamedTuple

from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import Cell, Verdict
from knowngood.domain.vocabulary import STATUSES, VERDICTS, StatusLabel, Term


class VerdictMark(NamedTuple):
    sign: str
    word: str


def _mark(term: Term) -> VerdictMark:
    return VerdictMark(term.symbol, term.word)


_IN_LEGENDS = list(StatusLabel)
MARKS = {
    verdict: _mark(VERDICTS[verdict])
    for verdict in sorted(Verdict, key=lambda verdict: _IN_LEGENDS.index(StatusLabel(VERDICTS[verdict].label)))
}
_BY_STATUS = {label: _mark(term) for label, term in STATUSES.items()}
INFERRED = VerdictMark("( )", "inferred from another Python of the same wheel, or from the CPU")


def in_text(verdict: Verdict) -> VerdictMark:
    """Its mark where no table shows by an empty place that nothing was run."""
    mark = MARKS[verdict]
    return mark if mark.sign else VerdictMark("□", mark.word)


def mark_of(cell: Cell) -> VerdictMark:
    """The mark of what was found, without a word on how it is known (`sign_of` has that)."""
    return _BY_STATUS[status_of(cell)]


def sign_of(cell: Cell) -> str:
    """`✕`, and `(✕)` where it is inferred."""
    sign = mark_of(cell).sign
    return f"({sign})" if cell.basis else sign


def legend_of(cells: Iterable[Cell]) -> list[VerdictMark]:
    """The marks of these cells alone, in a fixed order."""
    cells = list(cells)
    used = {status_of(cell) for cell in cells}
    marks = [_BY_STATUS[label] for label in _IN_LEGENDS if label in used]
    return [*marks, *([INFERRED] if any(cell.basis for cell in cells) else [])]
