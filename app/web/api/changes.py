"""`/api/v1/changes`: verdicts that became other ones, newest first; `/feeds/changes.atom` is the same as a feed."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.web.news import ChangesQuery, load_changes
from app.web.shapes.changes import ChangesBody, change_body
from app.web.visit import Visiting

router = APIRouter()


class ChangesApiQuery(ChangesQuery, extra="forbid"):
    """A misspelt parameter would silently widen the answer, so it is refused."""


@router.get("/changes", response_model=ChangesBody)
def changes(visit: Visiting, query: Annotated[ChangesApiQuery, Query()]) -> Response:
    """One entry per issue and cause (a run, an import), with each cell before and after it."""
    with visit.reading() as session:
        found, _ = load_changes(session, query)
    return visit.json(ChangesBody(changes=[change_body(change) for change in found]))
