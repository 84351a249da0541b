"""`/coverage`: every row with its pattern over the releases, and what of the catalogue is still open."""

from dataclasses import dataclass

from fastapi import APIRouter, Response

from knowngood.domain.grouping import grouped
from knowngood.domain.measuring.placement import Waiting
from knowngood.domain.verdicts.matrix import stale_cells
from knowngood.domain.verdicts.verdict import Cell
from knowngood.health.coverage.gaps import Gap, Pattern
from knowngood.health.coverage.hygiene import MismatchKind, Remark
from knowngood.health.coverage.service import ClassCoverage, Coverage, coverage_of, load_waiting
from knowngood.web.html.grid import CellGlyph, heads_of, squares_of
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API, issue_address

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class RowLine:
    """`is_unproven` where it passed wherever it was measured."""

    pattern: Pattern
    title: str
    address: str
    squares: tuple[CellGlyph, ...]
    is_unproven: bool


@dataclass(frozen=True)
class ComponentRows:
    component: str
    rows: tuple[RowLine, ...]

    @property
    def measured(self) -> int:
        return sum(row.pattern.measured for row in self.rows)

    @property
    def applicable(self) -> int:
        return sum(row.pattern.applicable for row in self.rows)


@dataclass(frozen=True)
class ClassTable:
    hardware: str
    sentence: str
    components: tuple[ComponentRows, ...]


@dataclass(frozen=True)
class CoveragePage:
    measured: int
    applicable: int
    conclusive: int
    tables: tuple[ClassTable, ...]
    contradictions: tuple[Remark, ...]
    unproven: tuple[Remark, ...]
    gaps: tuple[Gap, ...]
    doubtful: tuple[Cell, ...]
    waiting: tuple[Waiting, ...]
    json_address: str


@router.get("/coverage")
def coverage(context: Context) -> Response:
    return context.answer(
        lambda session: (coverage_of(context.known(session)), load_waiting(session, context.now)),
        lambda found: context.page("coverage.html", coverage_page(context, *found)),
    )


def coverage_page(context: RequestContext, found: Coverage, waiting: tuple[Waiting, ...]) -> CoveragePage:
    return CoveragePage(
        measured=sum(one.measured for one in found.classes),
        applicable=sum(one.applicable for one in found.classes),
        conclusive=sum(one.conclusive for one in found.classes),
        tables=tuple(_table(context, found, one) for one in found.classes),
        contradictions=found.remarks_about(MismatchKind.CONTRADICTED),
        unproven=found.remarks_about(MismatchKind.NEVER_FAILED),
        gaps=found.gaps,
        doubtful=found.doubtful,
        waiting=waiting,
        json_address=f"{API}/coverage",
    )


def _table(context: RequestContext, found: Coverage, one: ClassCoverage) -> ClassTable:
    cells = [cell for row in one.standing.values() for cell in row]
    stale = stale_cells(cells, found.builds, context.now)
    heads = heads_of(one.columns, {cell.build for cell in cells if cell.measured_at is not None})
    unproven = {remark.issue for remark in found.remarks_about(MismatchKind.NEVER_FAILED)}
    rows = (
        RowLine(
            pattern=pattern,
            title=context.title_of(pattern.issue),
            address=issue_address(pattern.issue.id, hardware=one.hardware),
            squares=squares_of(one.standing[pattern.issue.id], heads, stale),
            is_unproven=pattern.issue.id in unproven,
        )
        for pattern in one.patterns
    )
    by_component = grouped(rows, lambda row: row.pattern.issue.component)
    return ClassTable(
        hardware=one.hardware,
        sentence=context.say(
            "{measured} of {all} cells measured, {conclusive} with an answer; columns: {columns}",
            measured=one.measured,
            all=one.applicable,
            conclusive=one.conclusive,
            columns=", ".join(head.label for head in heads),
        ),
        components=tuple(ComponentRows(name, tuple(rows)) for name, rows in sorted(by_component.items())),
    )
