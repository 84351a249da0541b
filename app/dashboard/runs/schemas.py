"""A run, its jobs, and what happens in it, as JSON."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel

from knowngood.app.store.queries import EventRow, JobRow, JobState, RunRow, RunState
from knowngood.app.web.urls import run_address


class JobBody(BaseModel):
    """One environment of a run. `problem` says why arms of it were left undone (empty: none were)."""

    id: str
    build: str
    hardware: str
    state: JobState
    try_no: int
    arms_total: int
    arms_done: int
    started_at: datetime | None
    finished_at: datetime | None
    problem: str


class RunBody(BaseModel):
    """`request` is what was asked for, as the asker put it."""

    id: str
    state: RunState
    created_at: datetime
    finished_at: datetime | None
    request: dict[str, Any]
    arms_total: int
    arms_done: int
    jobs: list[JobBody]
    url: str


class RunsBody(BaseModel):
    """Newest first. `next` is the address of older runs (null: there are none)."""

    runs: list[RunBody]
    next: str | None = None


class EventBody(BaseModel):
    """One thing that happened, as the event stream sends it. What `data` holds depends on `kind`."""

    id: int
    at: datetime
    kind: str
    run: str
    data: dict[str, Any]


def run_body(run: RunRow) -> RunBody:
    return RunBody(
        id=run.id,
        state=run.state,
        created_at=run.created_at,
        finished_at=run.finished_at,
        request=dict(run.request),
        arms_total=run.arms_total,
        arms_done=run.arms_done,
        jobs=[_job(job) for job in run.jobs],
        url=run_address(run.id),
    )


def _job(job: JobRow) -> JobBody:
    return JobBody(**vars(job))


def event_body(event: EventRow) -> EventBody:
    return EventBody(id=event.id, at=event.at, kind=event.kind, run=event.run, data=dict(event.data))
