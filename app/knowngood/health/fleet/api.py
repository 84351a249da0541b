"""`/api/v1/workers`: who measures, how busy it is, what a cell costs, and what nobody can measure."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from knowngood.domain.measuring.worker_stats import Window
from knowngood.health.fleet.service import Workers, load_workers
from knowngood.web.request_context import Context

router = APIRouter(tags=["workers"])


class WorkersQuery(BaseModel, extra="forbid"):
    """How far back."""

    window: Annotated[Window, Field(description="How far back to look")] = Window.WEEK


@router.get("/workers", response_model=Workers)
def workers(context: Context, query: Annotated[WorkersQuery, Query()]) -> Response:
    """Every machine that ever measured here, whoever was seen last first."""
    return context.answer(
        lambda session: load_workers(session, context.known(session), query.window, context.now), context.json
    )
