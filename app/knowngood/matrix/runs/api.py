"""`/api/v1/runs`: what was asked to be measured, newest first."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from knowngood.matrix.lookups import find_run
from knowngood.matrix.overview.selection import Names
from knowngood.matrix.runs.schemas import RunBody, RunDetailBody, RunsBody
from knowngood.matrix.runs.time_left import load_time_left
from knowngood.store.engine import Session
from knowngood.store.queries import RunRow, load_runs
from knowngood.web.pagination import Paging, answer, in_parts, newest_after, next_of, one_of
from knowngood.web.request_context import Context

router = APIRouter(tags=["runs"])


class RunsQuery(Paging):
    fields: Annotated[Names, one_of(RunBody.model_fields), Field(description="Only these fields of each run")]


@router.get("/runs", response_model=in_parts(RunsBody, "runs"))
def runs(context: Context, query: Annotated[RunsQuery, Query()]) -> Response:
    """The newest runs, 100 where no limit is given."""
    after = newest_after(context.request, query.cursor)

    def show(found: Sequence[RunRow]) -> Response:
        shown, next_ = next_of(context.request, found, query.most, lambda run: (run.created_at, run.id))
        body = RunsBody(runs=[RunBody.of(run) for run in shown], next=next_)
        return answer(context, body, "runs", query.fields, next_, is_paged=True)

    return context.answer(lambda session: load_runs(session, query.most + 1, after=after), show)


@router.get("/runs/{run}", response_model=RunDetailBody)
def run(context: Context, run: str) -> Response:
    """One run with its jobs, and the time that it still takes."""

    def load(session: Session) -> tuple[RunRow, float | None]:
        found = find_run(session, run)
        return found, load_time_left(session, found, context.now)

    def show(found: tuple[RunRow, float | None]) -> Response:
        return context.json(RunDetailBody.of(found[0]).model_copy(update={"left_s": found[1]}))

    return context.answer(load, show)
