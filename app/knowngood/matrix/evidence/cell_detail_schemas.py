"""A cell as JSON with all that its page shows."""

from collections.abc import Iterable
from datetime import datetime

from knowngood.domain.message import english
from knowngood.domain.verdicts.changes import Cause, CellNews
from knowngood.domain.verdicts.verdict import Difference, Verdict, WorkaroundVerdict
from knowngood.domain.verdicts.workaround_cost import Cost
from knowngood.matrix.evidence.attempt_schemas import AttemptSummaryBody
from knowngood.matrix.evidence.cell_schemas import CellBody, cell_fields
from knowngood.matrix.evidence.service import CellEvidence, cell_sentence, timed_of
from knowngood.matrix.issues.workarounds import costs_on
from knowngood.web.json_body import Body, English


class VariantFindingBody(Body):
    """The baseline's verdict with one variant: `k` of `n` attempts that said anything ended with the signature."""

    variant: str
    verdict: Verdict
    reason: English
    k: int
    n: int


class WorkaroundFindingBody(Body):
    """`applies` is false where there is nothing to try on this build: unverified then, and not missing.

    `cost` is null where nothing comparable was measured.
    """

    id: str
    verdict: WorkaroundVerdict
    note: str
    applies: bool
    cost: Cost | None


class CellStepBody(Body):
    """One step of this cell: its verdict before and after, and what made it so."""

    at: datetime
    before: Verdict | None
    after: Verdict | None
    reason: English
    cause: Cause
    run: str
    origin: str


class CellDetailBody(CellBody, json_schema_serialization_defaults_required=True):
    """`superseded` counts attempts of an older repro, `voided` those of a worker whose results were voided: they stand
    in `evidence`, the newest 100 attempts, and do not count. `differences` are passes that do not count as such: their
    values are not those of any control; without values no control was run with their variant.

    `changes` are the newest 20 steps, the newest first.
    """

    sentence: str
    caveat: str = ""
    variants: list[VariantFindingBody]
    findings: list[WorkaroundFindingBody]
    superseded: int
    voided: int
    differences: list[Difference]
    changes: list[CellStepBody]
    evidence: list[AttemptSummaryBody]


def cell_detail(found: CellEvidence, now: datetime, news: Iterable[CellNews]) -> CellDetailBody:
    """`news` stand in the order in which they happened."""
    cell = found.cell
    costs = costs_on(found.issue, cell, timed_of(found.supporting))
    return CellDetailBody(
        **cell_fields(cell, found.build, now),
        sentence=cell_sentence(found),
        caveat=found.issue.caveat,
        variants=[VariantFindingBody.of(one) for one in cell.variants],
        findings=[
            WorkaroundFindingBody(
                id=id_,
                verdict=finding.verdict,
                note=english(finding.note),
                applies=finding.applies,
                cost=costs.get(id_),
            )
            for id_, finding in cell.workarounds.items()
        ],
        superseded=cell.superseded,
        voided=cell.voided,
        differences=list(cell.differences),
        changes=[CellStepBody.of(one) for one in reversed(list(news))],
        evidence=[AttemptSummaryBody.of(row) for row in found.attempts],
    )
