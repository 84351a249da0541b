"""Coverage of the catalogue, open cells, and where upstream's word and the measurements differ, as JSON."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from pydantic import BeforeValidator, Field

from knowngood.domain.measuring.placement import Waiting, Why
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.health.coverage.hygiene import MismatchKind
from knowngood.health.coverage.service import Coverage
from knowngood.web.json_body import Body, CellUrl, OfCellBody, read_from
from knowngood.web.urls import issue_address


class RemarkBody(Body):
    """`hardware` is empty where the remark is about every class; `about` names workarounds or the claim's source."""

    trouble: MismatchKind
    issue: str
    hardware: str
    sentence: str
    about: str
    url: Annotated[str, BeforeValidator(lambda issue, info: issue_address(issue, hardware=info.data["hardware"]))] = (
        read_from("issue")
    )


class HygieneBody(Body):
    remarks: list[RemarkBody]


class RowBody(Body):
    """`pattern` has a verdict for each of the class's `builds`, in their order."""

    issue: str = read_from("issue", "id")
    pattern: Annotated[list[Verdict], BeforeValidator(lambda cells: [cell.verdict for cell in cells])] = read_from(
        "cells"
    )
    applicable: int
    measured: int
    conclusive: int
    history: str = read_from("history", "sentence")
    url: Annotated[str, BeforeValidator(lambda cells: issue_address(cells[0].issue, hardware=cells[0].hardware))] = (
        read_from("cells")
    )


class ClassCoverageBody(Body):
    """Rows that apply to none of `builds` are left out."""

    hardware: str
    builds: Annotated[list[str], BeforeValidator(lambda builds: [build.id for build in builds])]
    applicable: int
    measured: int
    conclusive: int
    rows: list[RowBody] = read_from("patterns")


class GapBody(Body):
    issue: str = read_from("cell", "issue")
    build: str = read_from("cell", "build")
    hardware: str = read_from("cell", "hardware")
    workaround: str
    note: str
    url: CellUrl = read_from("cell", "key")


class DoubtfulBody(OfCellBody):
    verdict: Verdict
    reason: str
    url: CellUrl = read_from("key")


class WaitingBody(Body):
    """`last_seen_at` is when a worker of the class was last there; null where none ever was."""

    hardware: str
    jobs: int
    why: Why
    reason: str = read_from("sentence")
    last_seen_at: datetime | None


class CoverageBody(Body):
    hardware: list[ClassCoverageBody]
    gaps: list[GapBody] = Field(description="Workarounds without a verdict on builds where their issue is seen")
    doubtful: list[DoubtfulBody] = Field(description="Measured cells that do not say whether the issue is there")
    unproven: list[RemarkBody] = Field(description="Rows that passed wherever they were measured")
    contradictions: list[RemarkBody] = Field(description="Claims that measurements contradict")
    waiting: list[WaitingBody] = Field(description="Queued jobs that no worker can take now, by class, and why")


def coverage_body(found: Coverage, waiting: Iterable[Waiting]) -> CoverageBody:
    return CoverageBody(
        hardware=[ClassCoverageBody.of(one) for one in found.classes],
        gaps=[GapBody.of(gap) for gap in found.gaps],
        doubtful=[DoubtfulBody.of(cell) for cell in found.doubtful],
        unproven=[RemarkBody.of(remark) for remark in found.remarks_about(MismatchKind.NEVER_FAILED)],
        contradictions=[RemarkBody.of(remark) for remark in found.remarks_about(MismatchKind.CONTRADICTED)],
        waiting=[WaitingBody.of(one) for one in waiting],
    )
