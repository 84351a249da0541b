"""A cell as JSON with all that its page shows."""

from collections.abc import Iterable
from datetime import datetime

from knowngood.domain.verdicts.changes import Cause, CellNews
from knowngood.domain.verdicts.verdict import Cell, VariantFinding, Verdict, WorkaroundVerdict
from knowngood.domain.verdicts.workaround_cost import Cost
from knowngood.matrix.evidence.attempt_schemas import AttemptSummaryBody
from knowngood.matrix.evidence.cell_schemas import LEFT_OUT, CellBody, cell_fields
from knowngood.matrix.evidence.service import CellEvidence, cell_sentence, timed_of
from knowngood.matrix.issues.workarounds import costs_on
from knowngood.web.json_body import Body, English, fields_of


@fields_of(VariantFinding)
class VariantFindingBody(Body):
    """The baseline's verdict with one variant: `k` of `n` attempts that said anything ended with the signature."""


class WorkaroundFindingBody(Body):
    """`applies` is false where there is nothing to try on this build: unverified then, and not missing.

    `cost` is null where nothing comparable was measured.
    """

    id: str
    verdict: WorkaroundVerdict
    note: English
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


@fields_of(Cell, without=LEFT_OUT - {"superseded", "voided", "differences"})
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
    changes: list[CellStepBody]
    evidence: list[AttemptSummaryBody]


def cell_detail(found: CellEvidence, now: datetime, news: Iterable[CellNews]) -> CellDetailBody:
    """`news` stand in the order in which they happened."""
    cell = found.cell
    costs = costs_on(found.issue, cell, timed_of(found.supporting))
    return CellDetailBody(
        **cell_fields(cell, found.build, now)
        | {
            "sentence": cell_sentence(found),
            "caveat": found.issue.caveat,
            "findings": [
                WorkaroundFindingBody(id=id_, cost=costs.get(id_), **vars(finding))
                for id_, finding in cell.workarounds.items()
            ],
            "changes": list(news)[::-1],
            "evidence": found.attempts,
        }
    )
