"""How much of the catalogue is measured, and what is still open: each row's pattern over the releases, workarounds
without a verdict, cells without an answer.

Only what can be measured is missing: a workaround that does not apply to a build is no gap.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue, variants_of
from knowngood.domain.verdicts.history import History
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import CONCLUSIVE, Cell, Verdict, WorkaroundFinding, WorkaroundVerdict

DOUBTFUL = (Verdict.INCONCLUSIVE, Verdict.DIFFERENT_FAILURE)


@dataclass(frozen=True)
class Pattern:
    """One row on one hardware class: its cells, one per build and in their order, and what they add up to.

    `measured` of the `applicable` ones have evidence, `conclusive` of these an answer. The history is of every build,
    also of those that are not among the cells.
    """

    issue: Issue
    cells: tuple[Cell, ...]
    applicable: int
    measured: int
    conclusive: int
    history: History


def patterns_of(issues: Sequence[Issue], builds: Sequence[Build], hardware: str, known: Known) -> tuple[Pattern, ...]:
    """Rows in the order of `issues`, without those that apply to none of `builds`."""
    rows = ((issue, tuple(known.cell(issue, build, hardware) for build in builds)) for issue in issues)
    return tuple(
        _pattern(issue, row, known.history(issue.id, hardware)) for issue, row in rows if any(map(_applies, row))
    )


def _applies(cell: Cell) -> bool:
    return cell.verdict is not Verdict.NOT_APPLICABLE


def _pattern(issue: Issue, row: tuple[Cell, ...], history: History) -> Pattern:
    applicable = [cell for cell in row if _applies(cell)]
    return Pattern(
        issue=issue,
        cells=row,
        applicable=len(applicable),
        measured=sum(1 for cell in applicable if cell.basis is None and cell.verdict is not Verdict.NOT_RUN),
        conclusive=sum(1 for cell in applicable if cell.basis is None and cell.verdict in CONCLUSIVE),
        history=history,
    )


@dataclass(frozen=True)
class Gap:
    """A workaround nobody can judge yet on a cell that its issue affects, or not with every variant, and why not."""

    cell: Cell
    workaround: str
    note: str


def gaps_of(issue: Issue, cells: Iterable[Cell]) -> tuple[Gap, ...]:
    """In the order of `cells`, and of the issue's workarounds within one."""
    return tuple(
        Gap(cell, one.id, finding.note)
        for cell in cells
        if cell.verdict is Verdict.AFFECTED
        for one in issue.workarounds
        if (finding := cell.workarounds.get(one.id)) is not None and _is_open(issue, one.id, finding)
    )


def _is_open(issue: Issue, workaround: str, finding: WorkaroundFinding) -> bool:
    """Whether a measurement could still say something; what a row leaves out on purpose is no gap."""
    if finding.verdict is WorkaroundVerdict.PARTIAL:
        return any(variant.id in finding.untried for variant in variants_of(issue, workaround))
    return finding.verdict is WorkaroundVerdict.UNVERIFIED and finding.applies


def doubtful(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The cells that were measured and do not say whether the issue is there."""
    return tuple(cell for cell in cells if cell.verdict in DOUBTFUL)
