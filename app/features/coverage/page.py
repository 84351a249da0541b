"""`/coverage`: every row with its pattern over the releases, and what of the catalogue is still open."""

from dataclasses import dataclass

from fastapi import APIRouter, Response

from knowngood.app.domain.measuring.placement import Waiting
from knowngood.app.domain.verdicts.matrix import stale_cells
from knowngood.app.domain.verdicts.verdict import Cell
from knowngood.app.features.coverage.gaps import Gap, Pattern
from knowngood.app.features.coverage.hygiene import Remark, Trouble
from knowngood.app.features.coverage.service import ClassCoverage, Coverage, coverage_of, load_waiting
from knowngood.app.web.html.grid import CellGlyph, heads_of, squares_of
from knowngood.app.web.html.status_labels import WORDS, StatusLabel, sign_of
from knowngood.app.web.request_context import Context, RequestContext
from knowngood.app.web.urls import API, cell_address, issue_address

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
class ClassTable:
    hardware: str
    sentence: str
    rows: tuple[RowLine, ...]


@dataclass(frozen=True)
class GapLine:
    gap: Gap
    address: str


@dataclass(frozen=True)
class DoubtfulLine:
    cell: Cell
    address: str
    sign: StatusLabel
    word: str


@dataclass(frozen=True)
class RemarkLine:
    remark: Remark
    address: str


@dataclass(frozen=True)
class CoveragePage:
    measured: int
    applicable: int
    conclusive: int
    tables: tuple[ClassTable, ...]
    contradictions: tuple[RemarkLine, ...]
    unproven: tuple[RemarkLine, ...]
    gaps: tuple[GapLine, ...]
    doubtful: tuple[DoubtfulLine, ...]
    waiting: tuple[Waiting, ...]
    json_address: str


@router.get("/coverage")
def coverage(context: Context) -> Response:
    with context.reading() as session:
        found = coverage_of(context.known(session))
        waiting = load_waiting(session, context.now)
    return context.page("coverage.html", coverage_page(context, found, waiting))


def coverage_page(context: RequestContext, found: Coverage, waiting: tuple[Waiting, ...]) -> CoveragePage:
    return CoveragePage(
        measured=sum(one.measured for one in found.classes),
        applicable=sum(one.applicable for one in found.classes),
        conclusive=sum(one.conclusive for one in found.classes),
        tables=tuple(_table(context, found, one) for one in found.classes),
        contradictions=_remarks(found, Trouble.CONTRADICTED),
        unproven=_remarks(found, Trouble.NEVER_FAILED),
        gaps=tuple(GapLine(gap, _address(gap.cell)) for gap in found.gaps),
        doubtful=tuple(_doubtful(context, cell) for cell in found.doubtful),
        waiting=waiting,
        json_address=f"{API}/coverage",
    )


def _table(context: RequestContext, found: Coverage, one: ClassCoverage) -> ClassTable:
    cells = [cell for row in one.standing.values() for cell in row]
    stale = stale_cells(cells, found.builds, context.now)
    heads = heads_of(one.columns, {cell.build for cell in cells if cell.measured_at is not None})
    unproven = {remark.issue for remark in found.remarks_about(Trouble.NEVER_FAILED)}
    return ClassTable(
        hardware=one.hardware,
        sentence=context.say(
            "{measured} of {all} cells measured, {conclusive} with an answer; columns: {columns}",
            measured=one.measured,
            all=one.applicable,
            conclusive=one.conclusive,
            columns=", ".join(head.label for head in heads),
        ),
        rows=tuple(
            RowLine(
                pattern=pattern,
                title=context.in_language(pattern.issue.title, pattern.issue.title_zh),
                address=issue_address(pattern.issue.id, hardware=one.hardware),
                squares=squares_of(one.standing[pattern.issue.id], heads, stale),
                is_unproven=pattern.issue.id in unproven,
            )
            for pattern in one.patterns
        ),
    )


def _remarks(found: Coverage, trouble: Trouble) -> tuple[RemarkLine, ...]:
    return tuple(
        RemarkLine(remark, issue_address(remark.issue, hardware=remark.hardware))
        for remark in found.remarks_about(trouble)
    )


def _doubtful(context: RequestContext, cell: Cell) -> DoubtfulLine:
    sign = sign_of(cell)
    return DoubtfulLine(cell, _address(cell), sign, context.say(WORDS[sign]))


def _address(cell: Cell) -> str:
    return cell_address(cell.issue, cell.build, cell.hardware)
