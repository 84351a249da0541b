"""How much of the catalogue is measured, and what is still open: each row's pattern over the releases, workarounds
without a verdict, cells without an answer.

Only what can be measured is missing: a workaround that does not apply to a build is no gap.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue, variants_of
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import (
    CONCLUSIVE,
    NOT_RUN,
    Cell,
    OfCell,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
)
from knowngood.serialization.message_field import MessageField
from knowngood.web.urls import cell_address, issue_address

DOUBTFUL = (Verdict.INCONCLUSIVE, Verdict.DIFFERENT_FAILURE)
UNMEASURED = (Verdict.NOT_APPLICABLE, Verdict.NOT_RUN)


@dataclass(frozen=True)
class Pattern:
    """One issue on one hardware class: a verdict for each build, in their order, and what they add up to.

    `measured` of the `applicable` ones have evidence, `conclusive` of these an answer. The history is of every build,
    also of those that have no verdict here.
    """

    issue: str
    pattern: tuple[Verdict, ...]
    applicable: int
    measured: int
    conclusive: int
    history: MessageField
    url: str


def patterns_of(issues: Sequence[Issue], builds: Sequence[Build], hardware: str, known: Known) -> tuple[Pattern, ...]:
    """Rows in the order of `issues`, without those that apply to none of `builds`."""
    rows = (
        _pattern(issue, [known.cell(issue, build, hardware) for build in builds], hardware, known) for issue in issues
    )
    return tuple(row for row in rows if row.applicable)


def _pattern(issue: Issue, cells: Sequence[Cell], hardware: str, known: Known) -> Pattern:
    measured = [cell.verdict for cell in cells if cell.basis is None and cell.verdict not in UNMEASURED]
    return Pattern(
        issue=issue.id,
        pattern=tuple(cell.verdict for cell in cells),
        applicable=sum(1 for cell in cells if cell.verdict is not Verdict.NOT_APPLICABLE),
        measured=len(measured),
        conclusive=sum(1 for verdict in measured if verdict in CONCLUSIVE),
        history=known.history(issue.id, hardware).sentence,
        url=issue_address(issue.id, hardware=hardware),
    )


@dataclass(frozen=True)
class Gap(OfCell):
    """A workaround nobody can judge yet on a cell that its issue affects, or not with every variant, and why not."""

    workaround: str
    note: MessageField
    url: str


def gaps_of(issue: Issue, cells: Iterable[Cell]) -> tuple[Gap, ...]:
    """In the order of `cells`, and of the issue's workarounds within one."""
    return tuple(
        Gap(*cell.key, one.id, finding.note or NOT_RUN, cell_address(*cell.key))
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
