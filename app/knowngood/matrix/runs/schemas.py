"""A run and its jobs, as JSON."""

from typing import Annotated

from pydantic import AfterValidator

from knowngood.store.queries import RunRow
from knowngood.web.json_body import Body, fields_of, read_from
from knowngood.web.urls import run_address


@fields_of(RunRow)
class RunBody(Body):
    """`request` is what was asked for, as the asker put it."""

    url: Annotated[str, AfterValidator(run_address)] = read_from("id")


class RunDetailBody(RunBody):
    """`left_s` is about how many seconds it still takes (null: it is over, or no arm has ended yet)."""

    left_s: float | None = None


class RunsBody(Body):
    """Newest first. `next` is the address of older runs (null: there are none)."""

    runs: list[RunBody]
    next: str | None = None
