"""`/api/v1/matrix`: every cell of a selection, not_run ones too. Exact builds: Pythons are never folded here."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from knowngood.domain.verdicts.matrix import Columns, stale_cells
from knowngood.domain.verdicts.verdict import Cell, Verdict
from knowngood.matrix.overview.row_order import WORST_FIRST, RowOrder, in_order, newest_first, number_in
from knowngood.matrix.overview.selection import MatrixQuery, Names, Selection, Several, known_classes, select
from knowngood.matrix.schemas import CellBody, MatrixBody, matrix_body
from knowngood.store.engine import Session
from knowngood.store.queries import load_hardware
from knowngood.web.pagination import (
    Order,
    Paging,
    SortKey,
    answer,
    both_ways,
    by_rank,
    by_release,
    by_time,
    in_parts,
    one_of,
    order_of,
    part_of,
)
from knowngood.web.parameter_validation import Written, first_moment, last_moment
from knowngood.web.request_context import Context

router = APIRouter(tags=["matrix"])

_BUILD: SortKey[Cell] = by_release(lambda cell: cell.build)
_ID: SortKey[Cell] = SortKey(lambda cell: cell.issue, number_in)
_ISSUE: SortKey[Cell] = SortKey(lambda cell: cell.issue)
_SORTS: dict[str, SortKey[Cell]] = {
    "issue": _ISSUE,
    "build": _BUILD,
    "hardware": SortKey(lambda cell: cell.hardware),
    "verdict": by_rank(lambda cell: cell.verdict.value, list(Verdict)),
    "measured_at": by_time(lambda cell: cell.measured_at),
}


class MatrixApiQuery(MatrixQuery, Paging):
    """A misspelt parameter would silently widen the answer, so it is refused."""

    hardware: Annotated[
        Names, Field(description="Hardware classes, or names of GPUs such as H100; none means every measured one")
    ]
    columns: Annotated[
        Columns,
        Field(
            description="Which builds, where none are named. Each comes with the other Pythons it was measured with; "
            "one that was not is listed where it is named"
        ),
    ] = Columns.ALL
    verdicts: Annotated[Several[Verdict], Field(description="Only cells of these verdicts; `verdict` keeps whole rows")]
    since: Annotated[Written, Field(description="Only cells measured at this time or later")] = None
    stale: Annotated[bool | None, Field(description="Only cells whose evidence is too old to lean on, or not")] = None
    at: Annotated[
        Written,
        Field(
            description="As known at this time: what all attempts finished by then say by today's catalogue and rules. "
            "A day means its end in UTC"
        ),
    ] = None
    sort: Annotated[
        Names,
        one_of(both_ways([*_SORTS, *(word for word in RowOrder if word not in _SORTS)])),
        Field(
            description="By hardware, component, issue and release where nothing is asked; unmeasured cells last. The "
            "words of the matrix's page mean what they mean there: `severity` has the most severe first, `changed` "
            "what came or went in the newest release, `id` counts numbers as numbers"
        ),
    ]
    fields: Annotated[Names, one_of(CellBody.model_fields), Field(description="Only these fields of each cell")]

    @property
    def narrows(self) -> bool:
        """Whether it asks for some cells of its rows and columns instead of all."""
        return bool(self.verdicts) or self.since is not None or self.stale is not None or self.is_paged


@router.get("/matrix", response_model=in_parts(MatrixBody, "cells"))
def matrix(context: Context, query: Annotated[MatrixApiQuery, Query()]) -> Response:
    """Every cell of a selection, not_run ones too, with the issues and builds they are of."""
    then = None if query.at is None else last_moment(query.at, "at", context.now)
    since = None if query.since is None else first_moment(query.since, "since", context.now)
    now = then or context.now

    def load(session: Session) -> Selection:
        classes = known_classes(query.hardware, load_hardware(session))
        return select(session, query, classes, query.columns, cache=context.state.knowledge, now=now, at=then)

    def show(selection: Selection) -> Response:
        cells, next_ = part_of(context.request, _wanted(selection, query, since, now), _order(query, selection), query)
        issues, builds = selection.issues, [build for column in selection.columns for build in column.builds]
        if query.narrows:
            issues = tuple(issue for issue in issues if issue.id in {cell.issue for cell in cells})
            builds = [build for build in builds if build.id in {cell.build for cell in cells}]
        body = matrix_body(issues, builds, cells, now, next_)
        return answer(context, body, "cells", query.fields, next_, is_paged=query.is_paged)

    return (context.answer_in_turn if query.q else context.answer)(load, show)


def _wanted(selection: Selection, query: MatrixApiQuery, since: datetime | None, now: datetime) -> Iterable[Cell]:
    cells = [
        cell
        for class_ in selection.classes
        for issue in selection.issues
        for cell in selection.rows[issue.id, class_]
        if not query.verdicts or cell.verdict in query.verdicts
    ]
    if since is not None:
        cells = [cell for cell in cells if cell.measured_at is not None and cell.measured_at >= since]
    if query.stale is None:
        return cells
    stale = stale_cells(cells, {build.id: build for build in selection.looked.builds}, now)
    return [cell for cell in cells if (cell.key in stale) is query.stale]


def _order(query: MatrixApiQuery, selection: Selection) -> Order[Cell]:
    components = {issue.id: issue.component.casefold() for issue in selection.issues}
    severities = {issue.id: issue.severity.value for issue in selection.issues}
    component: SortKey[Cell] = SortKey(lambda cell: components[cell.issue])
    ordered = in_order(selection.issues, RowOrder.FAILS, selection.known, selection.classes[0])
    of_rows: dict[str, SortKey[Cell]] = {
        RowOrder.FAILS: by_rank(lambda cell: cell.issue, [issue.id for _, issue in ordered]),
        RowOrder.COMPONENT: component,
        RowOrder.SEVERITY: by_rank(lambda cell: severities[cell.issue], WORST_FIRST),
        RowOrder.CHANGED: SortKey(
            lambda cell: selection.known.history(cell.issue, cell.hardware).last_turn or None, newest_first
        ),
        RowOrder.ID: _ID,
    }
    hardware: SortKey[Cell] = by_rank(lambda cell: cell.hardware, selection.classes)
    return order_of(query.sort, {**_SORTS, **of_rows}, [hardware, component, _ISSUE, _BUILD])
