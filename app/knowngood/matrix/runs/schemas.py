"""A run and its jobs, as JSON."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator

from knowngood.store.queries import JobRow, RunState
from knowngood.web.json_body import Body, read_from
from knowngood.web.urls import run_address


class RunBody(Body):
    """`request` is what was asked for, as the asker put it."""

    id: str
    state: RunState
    created_at: datetime
    finished_at: datetime | None
    request: dict[str, Any]
    arms_total: int
    arms_done: int
    jobs: list[JobRow]
    url: Annotated[str, AfterValidator(run_address)] = read_from("id")


class RunDetailBody(RunBody):
    """`left_s` is about how many seconds it still takes (null: it is over, or no arm has ended yet)."""

    left_s: float | None = None


class RunsBody(Body):
    """Newest first. `next` is the address of older runs (null: there are none)."""

    runs: list[RunBody]
    next: str | None = None
