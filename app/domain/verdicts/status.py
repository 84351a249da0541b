"""How a cell stands, with its workarounds."""

from knowngood.app.domain.verdicts.verdict import Cell, WorkaroundVerdict
from knowngood.app.domain.vocabulary import VERDICTS, StatusLabel

# Looking up a member of an enum takes as long as the rest of what is asked of every cell.
_LABELS = {verdict: StatusLabel(term.label) for verdict, term in VERDICTS.items()}
_FAILS, _WORKAROUND, _PARTIAL = StatusLabel.FAILS, StatusLabel.WORKAROUND, StatusLabel.PARTIAL
_EFFECTIVE, _IN_PART = WorkaroundVerdict.EFFECTIVE, WorkaroundVerdict.PARTIAL


def status_of(cell: Cell) -> StatusLabel:
    label = _LABELS[cell.verdict]
    if label is not _FAILS:
        return label
    found = {one.verdict for one in cell.workarounds.values()}
    return _WORKAROUND if _EFFECTIVE in found else _PARTIAL if _IN_PART in found else label


def working(cell: Cell) -> tuple[str, ...]:
    """Ids of the workarounds that help on this very cell, with every variant that fails."""
    return _with_verdict(cell, _EFFECTIVE)


def partly_working(cell: Cell) -> tuple[str, ...]:
    """Of those that help with some of the variants that fail."""
    return _with_verdict(cell, _IN_PART)


def _with_verdict(cell: Cell, verdict: WorkaroundVerdict) -> tuple[str, ...]:
    return tuple(id_ for id_, finding in cell.workarounds.items() if finding.verdict is verdict)
