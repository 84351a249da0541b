"""A cell as JSON, short as the matrix lists it, and with all that its page shows."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator

from knowngood.app.dashboard.evidence.attempt_schemas import AttemptSummaryBody
from knowngood.app.dashboard.evidence.service import CellEvidence, cell_sentence, timed_of
from knowngood.app.dashboard.issues.workarounds import costs_on
from knowngood.app.domain.builds.build import Build
from knowngood.app.domain.verdicts.changes import Cause, CellNews
from knowngood.app.domain.verdicts.outcome import Outcome, ProofLevel
from knowngood.app.domain.verdicts.verdict import (
    Assurance,
    Basis,
    Cell,
    Difference,
    VariantFinding,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
    is_stale,
)
from knowngood.app.web.json_body import Body, read_from
from knowngood.app.web.urls import attempt_address


class GroundBody(Body):
    """A measured cell that an inferred one stands on: by which rule, and in how many of the pairs that were measured on
    both sides the rule held.
    """

    rule: str
    build: str
    hardware: str
    measured_at: datetime | None
    agreed: int
    compared: int


class WorkaroundVariantsBody(Body):
    """A workaround over the variants that are affected or flaky in the cell; `runs` is the least number of passes with
    one of `helped`.
    """

    verdict: WorkaroundVerdict
    assurance: Assurance
    helped: list[str]
    failed: list[str]
    untried: list[str]
    runs: int
    note: str


class CellBody(Body):
    """(issue, build, hardware class) and what is claimed of it. `attempts` counts the baseline's outcomes.

    `assurance` says whether that was measured here, is inferred from the cells in `grounds`, or is not known; `runs`
    how many attempts the verdict rests on. `as_reported` is the verdict with the variant that the report ran, where
    it is another one. `silent` says of what fails whether it gives wrong numbers without an error here (null: nothing
    fails, or it is as the issue says of itself). `proof` is `call` where the harness looked at the suspect call itself
    with every variant, `process` where it looked at the process around it, null where nothing was measured.
    """

    issue: str
    build: str
    hardware: str
    verdict: Verdict
    reason: str
    stale: bool
    measured_at: datetime | None
    control: Outcome | None
    attempts: dict[str, int]
    signature_line: str
    evidence_url: str | None
    workarounds: dict[str, WorkaroundVerdict]
    workaround_findings: dict[str, WorkaroundVariantsBody]
    assurance: Assurance
    grounds: list[GroundBody]
    runs: int
    as_reported: Verdict | None
    silent: bool | None
    proof: ProofLevel | None


class SpentBody(Body):
    """Medians over `attempts`; `peak_bytes` is null where it was not recorded."""

    seconds: float
    peak_bytes: Annotated[int | None, AfterValidator(lambda count: count or None)]
    attempts: int


class CostBody(Body):
    """One first call in a fresh process, compiling included: with the workaround, and the control's."""

    variant: str
    workaround: SpentBody = read_from("cure")
    control: SpentBody


class WorkaroundFindingBody(Body):
    """`applies` is false where there is nothing to try on this build: unverified then, and not missing.

    `cost` is null where nothing comparable was measured.
    """

    id: str
    verdict: WorkaroundVerdict
    note: str
    applies: bool
    cost: CostBody | None


class CellStepBody(Body):
    """One step of this cell: its verdict before and after, and what made it so."""

    at: datetime
    before: Verdict | None
    after: Verdict | None
    reason: str
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
    variants: list[VariantFinding]
    findings: list[WorkaroundFindingBody]
    superseded: int
    voided: int
    differences: list[Difference]
    changes: list[CellStepBody]
    evidence: list[AttemptSummaryBody]


def cell_body(cell: Cell, build: Build, now: datetime) -> CellBody:
    return CellBody(**_fields(cell, build, now))


def cell_detail(found: CellEvidence, now: datetime, news: Iterable[CellNews]) -> CellDetailBody:
    """`news` stand in the order in which they happened."""
    cell = found.cell
    costs = costs_on(found.issue, cell, timed_of(found.supporting))
    return CellDetailBody(
        **_fields(cell, found.build, now),
        sentence=cell_sentence(found),
        caveat=found.issue.caveat,
        variants=list(cell.variants),
        findings=[
            WorkaroundFindingBody(
                id=id_,
                verdict=finding.verdict,
                note=finding.note,
                applies=finding.applies,
                cost=CostBody.of(costs[id_]) if id_ in costs else None,
            )
            for id_, finding in cell.workarounds.items()
        ],
        superseded=cell.superseded,
        voided=cell.voided,
        differences=list(cell.differences),
        changes=[CellStepBody.of(one) for one in reversed(list(news))],
        evidence=[AttemptSummaryBody.of(row) for row in found.attempts],
    )


def _fields(cell: Cell, build: Build, now: datetime) -> dict[str, Any]:
    return {
        "issue": cell.issue,
        "build": cell.build,
        "hardware": cell.hardware,
        "verdict": cell.verdict,
        "reason": cell.reason,
        "stale": is_stale(cell, build, now),
        "measured_at": cell.measured_at,
        "control": cell.control,
        "attempts": cell.attempts,
        "signature_line": cell.line,
        "evidence_url": attempt_address(cell.evidence) if cell.evidence else None,
        "workarounds": {id_: finding.verdict for id_, finding in cell.workarounds.items()},
        "workaround_findings": {id_: _over_variants(cell, one) for id_, one in cell.workarounds.items()},
        "assurance": cell.assurance,
        "grounds": [_ground(cell, cell.basis)] if cell.basis else [],
        "runs": cell.runs,
        "as_reported": cell.as_reported.verdict if cell.as_reported else None,
        "silent": cell.silent,
        "proof": cell.proof,
    }


def _over_variants(cell: Cell, found: WorkaroundFinding) -> WorkaroundVariantsBody:
    is_known = found.verdict is not WorkaroundVerdict.UNVERIFIED
    return WorkaroundVariantsBody(
        verdict=found.verdict,
        assurance=cell.assurance if is_known else Assurance.NOT_KNOWN,
        helped=list(found.helped),
        failed=list(found.failed),
        untried=list(found.untried),
        runs=found.runs,
        note=found.note,
    )


def _ground(cell: Cell, basis: Basis) -> GroundBody:
    return GroundBody(
        rule=basis.rule,
        build=basis.build,
        hardware=basis.hardware,
        measured_at=cell.measured_at,
        agreed=basis.agreed,
        compared=basis.compared,
    )
