"""How a cell stands, with its workarounds, and what somebody who runs that build has to expect of it.

Everything that counts how cells stand (totals, charts, lifespans, advice) counts by `prospect_of`.
"""

from collections.abc import Set as AbstractSet
from enum import StrEnum

from knowngood.app.domain.verdicts.history import FAILING
from knowngood.app.domain.verdicts.verdict import CONCLUSIVE, NOT_RUN, Cell, Verdict, WorkaroundVerdict
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


def is_untried(cell: Cell) -> bool:
    """Whether a workaround of the issue was not run on this cell, so that "no workaround" is not known of it."""
    return any(finding.note == NOT_RUN for finding in cell.workarounds.values())


def _with_verdict(cell: Cell, verdict: WorkaroundVerdict) -> tuple[str, ...]:
    return tuple(id_ for id_, finding in cell.workarounds.items() if finding.verdict is verdict)


class Prospect(StrEnum):
    """Most severe first."""

    FAILS = "fails"  # and no workaround was measured to help with all of it
    NOT_KNOWN = "not_known"  # no answer, or its environment cannot be installed
    NEEDS_WORKAROUND = "needs_workaround"  # fails, and a workaround was measured to help on that very build
    PASSES = "passes"
    DOES_NOT_APPLY = "does_not_apply"  # cannot exist there: no gain, and no gap


FAILING_PROSPECTS: AbstractSet[Prospect] = frozenset({Prospect.FAILS, Prospect.NEEDS_WORKAROUND})


def prospect_of(cell: Cell) -> Prospect:
    """A different failure is a failure: whoever runs that build has one."""
    if cell.verdict is Verdict.NOT_APPLICABLE:
        return Prospect.DOES_NOT_APPLY
    if cell.verdict is Verdict.NOT_AFFECTED:
        return Prospect.PASSES
    if cell.verdict not in CONCLUSIVE:
        return Prospect.NOT_KNOWN
    return Prospect.NEEDS_WORKAROUND if has_workaround(cell) else Prospect.FAILS


def has_workaround(cell: Cell) -> bool:
    """Whether the issue fails on the cell, and a workaround was measured to help with all of it: one that helps with
    some variants alone is no remedy.
    """
    found = {finding.verdict for finding in cell.workarounds.values()}
    return cell.verdict in FAILING and WorkaroundVerdict.EFFECTIVE in found
