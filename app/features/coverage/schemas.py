"""What is measured of the catalogue, and what is open, as JSON."""

from collections.abc import Iterable
from datetime import datetime

from pydantic import BaseModel, Field

from knowngood.app.domain.measuring.placement import Waiting, Why
from knowngood.app.domain.verdicts.verdict import Cell, Verdict
from knowngood.app.features.coverage.gaps import Gap, Pattern
from knowngood.app.features.coverage.hygiene import Trouble
from knowngood.app.features.coverage.hygiene_schemas import RemarkBody, remark_body
from knowngood.app.features.coverage.service import ClassCoverage, Coverage
from knowngood.app.web.urls import cell_address, issue_address


class RowBody(BaseModel):
    """`pattern` has a verdict for each of the class's `builds`, in their order."""

    issue: str
    pattern: list[Verdict]
    applicable: int
    measured: int
    conclusive: int
    history: str
    url: str


class ClassCoverageBody(BaseModel):
    """Rows that apply to none of `builds` are left out."""

    hardware: str
    builds: list[str]
    applicable: int
    measured: int
    conclusive: int
    rows: list[RowBody]


class GapBody(BaseModel):
    issue: str
    build: str
    hardware: str
    workaround: str
    note: str
    url: str


class DoubtfulBody(BaseModel):
    issue: str
    build: str
    hardware: str
    verdict: Verdict
    reason: str
    url: str


class WaitingBody(BaseModel):
    """`last_seen_at` is when a worker of the class was last there; null where none ever was."""

    hardware: str
    jobs: int
    why: Why
    reason: str
    last_seen_at: datetime | None


class CoverageBody(BaseModel):
    hardware: list[ClassCoverageBody]
    gaps: list[GapBody] = Field(description="Workarounds without a verdict on builds where their issue is seen")
    doubtful: list[DoubtfulBody] = Field(description="Measured cells that do not say whether the issue is there")
    unproven: list[RemarkBody] = Field(description="Rows that passed wherever they were measured")
    contradictions: list[RemarkBody] = Field(description="Claims that measurements contradict")
    waiting: list[WaitingBody] = Field(description="Queued jobs that no worker can take now, by class, and why")


def coverage_body(found: Coverage, waiting: Iterable[Waiting]) -> CoverageBody:
    return CoverageBody(
        hardware=[_class(one) for one in found.classes],
        gaps=[_gap(gap) for gap in found.gaps],
        doubtful=[_doubtful(cell) for cell in found.doubtful],
        unproven=[remark_body(remark) for remark in found.remarks_about(Trouble.NEVER_FAILED)],
        contradictions=[remark_body(remark) for remark in found.remarks_about(Trouble.CONTRADICTED)],
        waiting=[
            WaitingBody(
                hardware=one.hardware, jobs=one.jobs, why=one.why, reason=one.sentence, last_seen_at=one.last_seen_at
            )
            for one in waiting
        ],
    )


def _class(one: ClassCoverage) -> ClassCoverageBody:
    return ClassCoverageBody(
        hardware=one.hardware,
        builds=[build.id for build in one.builds],
        applicable=one.applicable,
        measured=one.measured,
        conclusive=one.conclusive,
        rows=[_row(pattern, one.hardware) for pattern in one.patterns],
    )


def _row(pattern: Pattern, hardware: str) -> RowBody:
    return RowBody(
        issue=pattern.issue.id,
        pattern=[cell.verdict for cell in pattern.cells],
        applicable=pattern.applicable,
        measured=pattern.measured,
        conclusive=pattern.conclusive,
        history=pattern.history.sentence,
        url=issue_address(pattern.issue.id, hardware=hardware),
    )


def _gap(gap: Gap) -> GapBody:
    return GapBody(**_place(gap.cell), workaround=gap.workaround, note=gap.note)


def _doubtful(cell: Cell) -> DoubtfulBody:
    return DoubtfulBody(**_place(cell), verdict=cell.verdict, reason=cell.reason)


def _place(cell: Cell) -> dict[str, str]:
    address = cell_address(cell.issue, cell.build, cell.hardware)
    return {"issue": cell.issue, "build": cell.build, "hardware": cell.hardware, "url": address}
