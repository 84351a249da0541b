"""Coverage of the catalogue, its gaps, and where upstream's word and the measurements differ: for pages and JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from knowngood.domain.issue import Issue, inapplicable
from knowngood.domain.measuring.placement import Waiting, waiting_of
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import Columns, choose_columns
from knowngood.domain.verdicts.verdict import OfCell, Verdict
from knowngood.health.rules import (
    UNMEASURED,
    Gap,
    MismatchKind,
    Pattern,
    Remark,
    doubtful,
    gaps_of,
    patterns_of,
    remarks_of,
)
from knowngood.serialization.message_field import MessageField
from knowngood.store.engine import Session
from knowngood.store.jobs.job_queue import DISPATCHER
from knowngood.store.jobs.workers import load_offers, load_queued
from knowngood.store.queries import load_lease
from knowngood.web.urls import cell_address, issue_address


@dataclass(frozen=True)
class LinkedRemark(Remark):
    """`hardware` is empty where the remark is about every class; `about` names workarounds or the claim's source."""

    sentence: MessageField
    url: str


@dataclass(frozen=True)
class Hygiene:
    """Remarks by issue, in the order of ids."""

    remarks: tuple[LinkedRemark, ...]


@dataclass(frozen=True)
class DoubtfulCell(OfCell):
    """A cell that was measured and does not say whether the issue is there."""

    verdict: Verdict
    reason: MessageField
    url: str


@dataclass(frozen=True)
class ClassCoverage:
    """One hardware class: its rows over `builds`. Those that apply to none of these are left out."""

    hardware: str
    builds: tuple[str, ...]
    applicable: int
    measured: int
    conclusive: int
    rows: tuple[Pattern, ...]


@dataclass(frozen=True)
class Coverage:
    """How much of the catalogue is measured, by hardware class, and what is open."""

    hardware: tuple[ClassCoverage, ...]
    gaps: Annotated[
        tuple[Gap, ...], Field(description="Workarounds without a verdict on builds where their issue is seen")
    ]
    doubtful: Annotated[
        tuple[DoubtfulCell, ...], Field(description="Measured cells that do not say whether the issue is there")
    ]
    unproven: Annotated[tuple[LinkedRemark, ...], Field(description="Rows that passed wherever they were measured")]
    contradictions: Annotated[tuple[LinkedRemark, ...], Field(description="Claims that measurements contradict")]
    waiting: Annotated[
        tuple[Waiting, ...], Field(description="Queued jobs that no worker can take now, by class, and why")
    ]


def coverage_of(known: Known, waiting: tuple[Waiting, ...] = ()) -> Coverage:
    issues = [known.issues[id_] for id_ in sorted(known.issues)]
    cells = {
        issue.id: [cell for hardware in known.hardware for _, cell in known.measured(issue.id, hardware)]
        for issue in issues
    }
    every = [cell for of in cells.values() for cell in of]
    remarks = hygiene_of(known).remarks
    return Coverage(
        hardware=tuple(_class(issues, hardware, known) for hardware in sorted({cell.hardware for cell in every})),
        gaps=tuple(gap for issue in issues for gap in gaps_of(issue, cells[issue.id])),
        doubtful=tuple(
            DoubtfulCell(*cell.key, cell.verdict, cell.reason, cell_address(*cell.key)) for cell in doubtful(every)
        ),
        unproven=tuple(remark for remark in remarks if remark.trouble is MismatchKind.NEVER_FAILED),
        contradictions=tuple(remark for remark in remarks if remark.trouble is MismatchKind.CONTRADICTED),
        waiting=waiting,
    )


def _class(issues: Sequence[Issue], hardware: str, known: Known) -> ClassCoverage:
    measured = {cell.build for issue in issues for _, cell in known.measured(issue.id, hardware) if cell.measured_at}
    chosen = choose_columns(known.builds.values(), measured, Columns.MEASURED)
    rows = patterns_of(issues, chosen, hardware, known)
    return ClassCoverage(
        hardware=hardware,
        builds=tuple(build.id for build in chosen),
        applicable=sum(row.applicable for row in rows),
        measured=sum(row.measured for row in rows),
        conclusive=sum(row.conclusive for row in rows),
        rows=rows,
    )


def hygiene_of(known: Known) -> Hygiene:
    return Hygiene(
        tuple(
            LinkedRemark(**vars(remark), url=issue_address(remark.issue, hardware=remark.hardware))
            for remark in remarks_of(known)
        )
    )


def cells_by_class(known: Known) -> dict[str, tuple[int, int]]:
    """Measured and applicable cells of each hardware class, as in its `ClassCoverage`, without what could be inferred,
    which takes most of making a coverage.
    """
    counts = ((hardware, _count(hardware, known)) for hardware in known.hardware)
    return {hardware: count for hardware, count in counts if count}


def _count(hardware: str, known: Known) -> tuple[int, int] | None:
    """None where the catalogue's issues have no cell on this class."""
    stored = {(cell.issue, cell.build): cell for id_ in known.issues for _, cell in known.measured(id_, hardware)}
    if not stored:
        return None
    measured = {cell.build for cell in stored.values() if cell.measured_at}
    builds = choose_columns(known.builds.values(), measured, Columns.MEASURED)
    cells = [(issue, build, stored.get((id_, build.id))) for id_, issue in known.issues.items() for build in builds]
    answered = sum(1 for _, _, cell in cells if cell and cell.verdict not in UNMEASURED)
    not_run = sum(
        inapplicable(issue, build, hardware) is None
        for issue, build, cell in cells
        if cell is None or cell.verdict is Verdict.NOT_RUN
    )
    return answered, answered + not_run


def load_waiting(session: Session, now: datetime) -> tuple[Waiting, ...]:
    """The queued jobs that nobody can take, and why."""
    queued = load_queued(session)
    if not queued:
        return ()
    lease = load_lease(session, DISPATCHER)
    return waiting_of(queued, load_offers(session), lease.until if lease else None, now)
