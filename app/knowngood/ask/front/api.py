"""`/api/v1/overview`: what the front door shows, as JSON."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from knowngood.ask.front.schemas import OverviewBody, overview_body
from knowngood.ask.front.service import Overview, load_overview, usual_class
from knowngood.matrix.overview.selection import Words, builds_or_wheels, known_classes
from knowngood.store.engine import Session
from knowngood.web.request_context import Context

router = APIRouter(tags=["overview"])


class OverviewQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    build: Annotated[
        Words, Field(description="The build one is on: its id, or the version of torch; the newest release unless said")
    ] = ""
    hardware: Annotated[Words, Field(description="The hardware class; the CPU where it was measured, unless said")] = ""


@router.get("/overview", response_model=OverviewBody)
def overview(context: Context, query: Annotated[OverviewQuery, Query()]) -> Response:
    """How one build stands, where to go from it, what to watch out for, what changed lately, and how every measured
    release does.
    """

    def load(session: Session) -> Overview:
        known = context.known(session)
        build = builds_or_wheels(known.builds.values(), [query.build], "build")[0] if query.build else None
        hardware = known_classes([query.hardware], known.hardware)[0] if query.hardware else usual_class(known)
        return load_overview(session, context.state, context.now, build, hardware)

    return context.answer(load, lambda answer: context.json(overview_body(answer, is_example=not query.build)))
