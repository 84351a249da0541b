"""`/api/v1/runs`: what was asked to be measured, newest first."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.store.reads import load_runs
from app.web.finding import find_run
from app.web.shapes.runs import RunBody, RunsBody, run_body
from app.web.visit import Visiting

router = APIRouter()


@router.get("/runs", response_model=RunsBody)
def runs(visit: Visiting, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> Response:
    with visit.reading() as session:
        found = load_runs(session, limit)
    return visit.json(RunsBody(runs=[run_body(run) for run in found]))


@router.get("/runs/{run}", response_model=RunBody)
def run(visit: Visiting, run: str) -> Response:
    with visit.reading() as session:
        found = find_run(session, run)
    return visit.json(run_body(found))
