"""The status of a cell with its workarounds, and what people who run that build can expect of it.

Everything that counts how cells stand (totals, charts, lifespans) counts by `prospect_of`; advice by `remedy_of`.
"""

from collections.abc import Set as AbstractSet
from enum import StrEnum

from knowngood.domain.issue import Issue, Workaround
from knowngood.domain.verdicts.verdict import (
    CONCLUSIVE,
    EXCESSES,
    FAILING,
    Cell,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
)
from knowngood.domain.vocabulary import VERDICTS, WORKAROUNDS, StatusLabel

# Looking up a member of an enum takes as long as the rest of what is asked of every cell.
_LABELS = {verdict: StatusLabel(term.label) for verdict, term in VERDICTS.items()}
_FAILS, _WORKAROUND, _PARTIAL = StatusLabel.FAILS, StatusLabel.WORKAROUND, StatusLabel.PARTIAL
_UNTRIED, _AS_REPORTED = StatusLabel.UNTRIED, StatusLabel.AS_REPORTED
_EFFECTIVE, _IN_PART = WorkaroundVerdict.EFFECTIVE, WorkaroundVerdict.PARTIAL


def status_of(cell: Cell) -> StatusLabel:
    label = _LABELS[cell.verdict]
    if label is not _FAILS:
        return label
    return _AS_REPORTED if passes_as_reported(cell) else help_on(cell)


def help_on(cell: Cell) -> StatusLabel:
    """How a failure stands with its workarounds, whatever kind of failure it is; any other cell as it stands."""
    if cell.verdict not in FAILING:
        return _LABELS[cell.verdict]
    verdicts = {workaround.verdict for workaround in cell.workarounds.values()}
    if _EFFECTIVE in verdicts or _IN_PART in verdicts:
        return _WORKAROUND if _EFFECTIVE in verdicts else _PARTIAL
    return _UNTRIED if is_untried(cell) else _FAILS


_BEST_FIRST = tuple(WORKAROUNDS)


def usefulness(finding: WorkaroundFinding) -> tuple[int, bool]:
    """The sort key of workarounds, the recommended one first: what works on this very build comes before what worked
    with another Python of it, and that before what helps in part. Between equals the order of the row decides, which
    lists what costs less first, and of what costs the same that which changes less.
    """
    return _BEST_FIRST.index(finding.verdict), bool(finding.ground)


def ranked(issue: Issue, cell: Cell) -> list[tuple[Workaround, WorkaroundFinding]]:
    """The workarounds of which the cell says something, the recommended one first."""
    found = [(one, cell.workarounds[one.id]) for one in issue.workarounds if one.id in cell.workarounds]
    return sorted(found, key=lambda pair: usefulness(pair[1]))


def passes_as_reported(cell: Cell) -> bool:
    """Whether it fails, and passes with the variant that the report ran."""
    own = cell.as_reported
    return cell.verdict is Verdict.AFFECTED and own is not None and own.verdict is Verdict.NOT_AFFECTED


def failing_variants(cell: Cell) -> tuple[str, ...]:
    return tuple(variant.variant for variant in cell.variants if variant.verdict is cell.verdict)


def working(cell: Cell) -> tuple[str, ...]:
    """Ids of the workarounds that help on this very cell, with every variant that fails."""
    return _with_verdict(cell, _EFFECTIVE)


def partly_working(cell: Cell) -> tuple[str, ...]:
    """Ids of the workarounds that help with some of the variants that fail."""
    return _with_verdict(cell, _IN_PART)


def is_untried(cell: Cell) -> bool:
    """Whether it fails, nothing is known to help with all of it, and a workaround that applies has no answer here: that
    none helps is then not known.
    """
    return cell.verdict in FAILING and not has_workaround(cell) and bool(untried(cell))


def untried(cell: Cell) -> tuple[str, ...]:
    """Ids of the workarounds that apply and have no answer here."""
    findings = cell.workarounds.items()
    return tuple(
        id_ for id_, finding in findings if finding.applies and finding.verdict is WorkaroundVerdict.UNVERIFIED
    )


def _with_verdict(cell: Cell, verdict: WorkaroundVerdict) -> tuple[str, ...]:
    return tuple(id_ for id_, finding in cell.workarounds.items() if finding.verdict is verdict)


class Prospect(StrEnum):
    """Most severe first."""

    FAILS = "fails"  # and no workaround is known to help with all of it; one may have no answer there (`is_untried`)
    NOT_KNOWN = "not_known"  # no answer, or its environment cannot be installed
    NEEDS_WORKAROUND = "needs_workaround"  # fails, and a workaround was measured to help on that very build
    BIGGER = "bigger"  # right, and takes more memory than it must
    MORE_WORK = "more_work"  # right, and takes more compilations, kernels or copies than it must
    SLOWER = "slower"  # right, and takes longer than it must
    AS_REPORTED = "as_reported"  # passes as reported, and fails in a variant, with a workaround or without
    PASSES = "passes"
    DOES_NOT_APPLY = "does_not_apply"  # cannot exist there: no gain, and no gap


FAILING_PROSPECTS: AbstractSet[Prospect] = frozenset({Prospect.FAILS, Prospect.NEEDS_WORKAROUND, Prospect.AS_REPORTED})


def prospect_of(cell: Cell) -> Prospect:
    return Prospect.AS_REPORTED if passes_as_reported(cell) else remedy_of(cell)


def fails(cell: Cell) -> bool:
    """Whether it fails, with a workaround or without: what the lines of failures over a column count."""
    return prospect_of(cell) in FAILING_PROSPECTS


def remedy_of(cell: Cell) -> Prospect:
    """The same for advice, to which a failing variant is a failure like any other: it asks whether something helps.

    A different failure is a failure too: people who run that build have one.
    """
    if cell.verdict is Verdict.NOT_APPLICABLE:
        return Prospect.DOES_NOT_APPLY
    if cell.verdict is Verdict.NOT_AFFECTED:
        return Prospect.PASSES
    if cell.verdict not in CONCLUSIVE:
        return Prospect.NOT_KNOWN
    if cell.verdict in EXCESSES:
        return Prospect(cell.verdict)
    return Prospect.NEEDS_WORKAROUND if has_workaround(cell) else Prospect.FAILS


def has_workaround(cell: Cell) -> bool:
    """Whether the issue fails on the cell, and a workaround was measured to help with all of it: one that helps with
    some variants alone is no remedy.
    """
    verdicts = {finding.verdict for finding in cell.workarounds.values()}
    return cell.verdict in FAILING and WorkaroundVerdict.EFFECTIVE in verdicts
