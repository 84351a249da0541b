"""`/api/v1/coverage`, `hygiene`, `quality` and `workers`: what is missing, contradicted, repeated, and who measures."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from knowngood.domain.measuring.worker_stats import Window
from knowngood.health.coverage.service import Coverage, Hygiene, coverage_of, hygiene_of, load_waiting
from knowngood.health.fleet.service import Workers, load_workers
from knowngood.health.quality.service import Quality, load_quality
from knowngood.web.request_context import Context

router = APIRouter()


@router.get("/coverage", response_model=Coverage, tags=["coverage"])
def coverage(context: Context) -> Response:
    """Patterns by hardware class, and what is open: workarounds without a verdict, doubtful cells, unproven rows,
    contradicted claims, queued jobs that no worker can take.
    """
    return context.answer(
        lambda session: coverage_of(context.known(session), load_waiting(session, context.now)),
        context.json,
        f"{context.now:%H:%M}",  # a worker's absence is noticed by the clock alone
    )


@router.get("/hygiene", response_model=Hygiene, tags=["hygiene"])
def hygiene(context: Context) -> Response:
    """Remarks for a keeper of the catalogue, by issue."""
    return context.answer(context.known, lambda known: context.json(hygiene_of(known)))


@router.get("/quality", response_model=Quality, tags=["quality"])
def quality(context: Context) -> Response:
    """The rate of false changes and its interval, what varies, what was trouble of ours, how far Pythons and devices
    agree, and where time went.
    """
    return context.answer(lambda session: load_quality(session, context.known(session).claims), context.json)


class WorkersQuery(BaseModel, extra="forbid"):
    """How far back."""

    window: Annotated[Window, Field(description="How far back to look")] = Window.WEEK


@router.get("/workers", response_model=Workers, tags=["workers"])
def workers(context: Context, query: Annotated[WorkersQuery, Query()]) -> Response:
    """Every machine that ever measured here, whoever was seen last first."""
    return context.answer(
        lambda session: load_workers(session, context.known(session), query.window, context.now), context.json
    )
