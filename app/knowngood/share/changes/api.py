"""`/api/v1/changes`: verdicts that became other ones, newest first; `/feeds/` has the same as feeds."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from knowngood.share.changes.schemas import ChangesBody
from knowngood.share.changes.service import ChangesQuery, load_changes
from knowngood.web.request_context import Context

router = APIRouter(tags=["changes"])


@router.get("/changes", response_model=ChangesBody)
def changes(context: Context, query: Annotated[ChangesQuery, Query()]) -> Response:
    """One entry per cause (a run, an import, an edit of the catalogue), with each cell before and after it.

    First measurements are no changes: `first=true` adds them, marked as such.
    """
    return context.answer(
        lambda session: load_changes(session, query), lambda found: context.json(ChangesBody.of(found))
    )
