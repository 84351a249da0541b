"""`/coverage`: every row with its pattern over the releases, and what of the catalogue is still open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Response

from knowngood.domain.grouping import grouped
from knowngood.domain.measuring.placement import Waiting
from knowngood.domain.verdicts.matrix import stale_cells
from knowngood.health.coverage.gaps import Pattern
from knowngood.health.coverage.service import ClassCoverage, Coverage, coverage_of, load_waiting
from knowngood.web.html.grid import CellGlyph, heads_of, squares_of
from knowngood.web.request_context import Context, RequestContext

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class ClassTable:
    """One hardware class, with the labels of its columns, and its rows with their squares by component."""

    found: ClassCoverage
    columns: tuple[str, ...]
    components: Mapping[str, Sequence[tuple[Pattern, Sequence[CellGlyph]]]]


@dataclass(frozen=True)
class CoveragePage:
    found: Coverage
    waiting: tuple[Waiting, ...]
    tables: tuple[ClassTable, ...]


@router.get("/coverage")
def coverage(context: Context) -> Response:
    return context.answer(
        lambda session: (coverage_of(context.known(session)), load_waiting(session, context.now)),
        lambda found: context.page("coverage.html", coverage_page(context, *found)),
    )


def coverage_page(context: RequestContext, found: Coverage, waiting: tuple[Waiting, ...]) -> CoveragePage:
    return CoveragePage(found, waiting, tuple(_table(context, found, one) for one in found.classes))


def _table(context: RequestContext, found: Coverage, one: ClassCoverage) -> ClassTable:
    cells = [cell for row in one.standing.values() for cell in row]
    stale = stale_cells(cells, found.builds, context.now)
    heads = heads_of(one.columns, {cell.build for cell in cells if cell.measured_at is not None})
    rows = [(pattern, squares_of(one.standing[pattern.issue.id], heads, stale)) for pattern in one.patterns]
    by_component = grouped(rows, lambda row: row[0].issue.component)
    return ClassTable(one, tuple(head.label for head in heads), dict(sorted(by_component.items())))
