"""`/coverage`: every row with its pattern over the releases, and what of the catalogue is still open.

`/hygiene`: what a keeper of the catalogue should look at, by kind.
"""

from collections.abc import Mapping, Sequence

from fastapi import APIRouter, Response

from knowngood.domain.grouping import grouped
from knowngood.domain.measuring.placement import Waiting
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import fold, rows_of, stale_cells
from knowngood.health.coverage.gaps import Pattern
from knowngood.health.coverage.hygiene import HEADINGS
from knowngood.health.coverage.service import ClassCoverage, coverage_of, hygiene_of, load_waiting
from knowngood.web.html.grid import CellGlyph, ColumnHeader, heads_of, squares_of
from knowngood.web.request_context import Context, RequestContext

router = APIRouter(include_in_schema=False)

Components = Mapping[str, Sequence[tuple[Pattern, Sequence[CellGlyph]]]]


@router.get("/coverage")
def coverage(context: Context) -> Response:
    return context.answer(
        lambda session: (context.known(session), load_waiting(session, context.now)),
        lambda found: _coverage_page(context, *found),
    )


def _coverage_page(context: RequestContext, known: Known, waiting: tuple[Waiting, ...]) -> Response:
    found = coverage_of(known, waiting)
    tables = {one.hardware: _table(context, one, known) for one in found.hardware}
    return context.page("coverage.html", found, issues=known.issues, tables=tables)


def _table(context: RequestContext, of_class: ClassCoverage, known: Known) -> tuple[Sequence[ColumnHeader], Components]:
    """The columns of one class, where Pythons that agree share one, and its rows with their squares by component."""
    issues, classes = [known.issues[row.issue] for row in of_class.rows], [of_class.hardware]
    columns = fold(issues, [known.builds[id_] for id_ in of_class.builds], classes, known)
    standing = rows_of(issues, columns, classes, known)
    cells = [cell for row in standing.values() for cell in row]
    heads = heads_of(columns, {cell.build for cell in cells if cell.measured_at is not None})
    stale = stale_cells(cells, known.builds, context.now)
    rows = [(row, squares_of(standing[row.issue, of_class.hardware], heads, stale)) for row in of_class.rows]
    return heads, dict(sorted(grouped(rows, lambda row: known.issues[row[0].issue].component).items()))


@router.get("/hygiene")
def hygiene(context: Context) -> Response:
    return context.answer(
        context.known,
        lambda known: context.page("hygiene.html", hygiene_of(known), issues=known.issues, headings=HEADINGS),
    )
