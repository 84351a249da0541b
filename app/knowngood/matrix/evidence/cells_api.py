"""`/api/v1/cells/{issue}/{build}`: one cell with its evidence."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from knowngood.matrix.evidence.cell_detail_schemas import CellDetailBody, cell_detail
from knowngood.matrix.evidence.service import CHANGES_SHOWN, load_cell_evidence
from knowngood.matrix.overview.selection import Words
from knowngood.store.engine import Session
from knowngood.store.evidence.changes import load_cell_news
from knowngood.web.parameter_validation import Written, last_moment
from knowngood.web.request_context import Context

router = APIRouter(tags=["cells"])


@router.get("/cells/{issue}/{build}", response_model=CellDetailBody)
def cell(
    context: Context,
    issue: str,
    build: str,
    hardware: Annotated[Words, Query(description="The hardware class; none means the first that was measured")] = "",
    at: Annotated[
        Written, Query(description="As known at this time: what attempts finished by then say by today's rules")
    ] = None,
) -> Response:
    """One cell with its newest 100 attempts, superseded ones too, as known now; or with all of them, at a past time."""
    then = None if at is None else last_moment(at, "at", context.now)
    now = then or context.now

    def load(session: Session) -> CellDetailBody:
        found = load_cell_evidence(session, context.known(session), issue, build, hardware, at=then)
        news = load_cell_news(session, *found.cell.key, CHANGES_SHOWN)
        return cell_detail(found, now, [one for one in news if one.at <= now])

    return context.answer(load, context.json)
