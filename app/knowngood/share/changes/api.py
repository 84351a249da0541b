"""`/api/v1/changes`: verdicts that became other ones, newest first; `/feeds/` has the same as feeds."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BeforeValidator

from knowngood.domain.message import english
from knowngood.domain.verdicts.changes import Cause, CellTurn
from knowngood.serialization.message_field import MessageField
from knowngood.share.changes.atom import summary as in_summary
from knowngood.share.changes.service import ChangesQuery, load_changes
from knowngood.web.json_body import Body, CellUrl, OfCellBody, fields_of, read_from
from knowngood.web.request_context import Context
from knowngood.web.urls import run_address


@fields_of(CellTurn)
class CellTurnBody(OfCellBody):
    """One cell before and after. `workarounds` are those whose verdict is another one, by id.

    `first` says that nobody had ever measured it. `earlier` is the last verdict of a cell whose repro has become
    another one since, so that it was not run.
    """

    first: bool = read_from("is_first")
    reason: MessageField
    url: CellUrl = read_from("key")


class ChangeBody(Body):
    """The changes by one cause. `run` and `run_url` where the cause is a run, `origin` where it is an import."""

    key: str
    at: datetime
    cause: Cause
    run: str
    run_url: Annotated[str | None, BeforeValidator(lambda run: run_address(run) if run else None)] = read_from("run")
    origin: str
    issues: list[str]
    summary: Annotated[str, BeforeValidator(lambda turns: english(in_summary(turns)))] = read_from("turns")
    cells: list[CellTurnBody] = read_from("turns")


class ChangesBody(Body):
    """Newest first."""

    changes: list[ChangeBody]


router = APIRouter(tags=["changes"])


@router.get("/changes", response_model=ChangesBody)
def changes(context: Context, query: Annotated[ChangesQuery, Query()]) -> Response:
    """One entry per cause (a run, an import, an edit of the catalogue), with each cell before and after it.

    First measurements are no changes: `first=true` adds them, marked as such.
    """
    return context.answer(lambda session: load_changes(session, query), lambda news: context.json(ChangesBody.of(news)))
