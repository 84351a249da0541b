"""A cell as JSON, short as the matrix lists it, and with all that its page shows."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from app.domain.build import Build
from app.domain.outcome import Outcome
from app.domain.verdict import Cell, Verdict, WorkaroundVerdict, is_stale
from app.store.reads import AttemptRow
from app.web.addresses import attempt_address
from app.web.shapes.attempts import AttemptSummaryBody, attempt_summary


class CellBody(BaseModel):
    """(issue, build, hardware class) and what is known of it. `attempts` counts the baseline's outcomes."""

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


class VariantFindingBody(BaseModel):
    """`k` of `n` attempts that said anything ended with the issue's signature."""

    variant: str
    verdict: Verdict
    reason: str
    k: int
    n: int


class WorkaroundFindingBody(BaseModel):
    """`applies` is false where there is nothing to try on this build: unverified then, and not missing."""

    id: str
    verdict: WorkaroundVerdict
    note: str
    applies: bool


class CellDetailBody(CellBody):
    """`superseded` counts attempts of an older repro: they stand in `evidence` and do not count."""

    sentence: str
    variants: list[VariantFindingBody]
    findings: list[WorkaroundFindingBody]
    superseded: int
    evidence: list[AttemptSummaryBody]


def cell_body(cell: Cell, build: Build, now: datetime) -> CellBody:
    return CellBody(**_fields(cell, build, now))


def cell_detail(
    cell: Cell, build: Build, now: datetime, sentence: str, attempts: Iterable[AttemptRow]
) -> CellDetailBody:
    return CellDetailBody(
        **_fields(cell, build, now),
        sentence=sentence,
        variants=[
            VariantFindingBody(variant=one.variant, verdict=one.verdict, reason=one.reason, k=one.k, n=one.n)
            for one in cell.variants
        ],
        findings=[
            WorkaroundFindingBody(id=id_, verdict=finding.verdict, note=finding.note, applies=finding.applies)
            for id_, finding in cell.workarounds.items()
        ],
        superseded=cell.superseded,
        evidence=[attempt_summary(row) for row in attempts],
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
    }
