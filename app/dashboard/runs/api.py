"""`/api/v1/runs`: what was asked to be measured, newest first."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from knowngood.app.dashboard.lookups import find_run
from knowngood.app.dashboard.matrix.selection import Names
from knowngood.app.dashboard.runs.schemas import RunBody, RunsBody, run_body
from knowngood.app.store.queries import load_runs
from knowngood.app.web.pagination import Paging, answer, in_parts, known_fields, newest_after, next_of, one_of
from knowngood.app.web.request_context import Context

router = APIRouter()


class RunsQuery(Paging):
    fields: Annotated[Names, one_of(RunBody.model_fields), Field(description="Only these fields of each run")]


@router.get("/runs", response_model=in_parts(RunsBody, "runs"))
def runs(context: Context, query: Annotated[RunsQuery, Query()]) -> Response:
    """The newest runs, 100 where no limit is given."""
    fields = known_fields(query.fields, RunBody)
    after = newest_after(context.request, query.cursor)
    with context.reading() as session:
        found = load_runs(session, query.most + 1, after=after)
    shown, next_ = next_of(context.request, found, query.most, lambda run: (run.created_at, run.id))
    body = RunsBody(runs=[run_body(run) for run in shown], next=next_)
    return answer(context, body, "runs", fields, next_, is_paged=True)


@router.get("/runs/{run}", response_model=RunBody)
def run(context: Context, run: str) -> Response:
    """One run with its jobs."""
    with context.reading() as session:
        found = find_run(session, run)
    return context.json(run_body(found))
