"""`/api/v1/overview`: what the front door shows, as JSON."""

from fastapi import APIRouter, Response

from knowngood.ask.front.service import Overview, load_overview
from knowngood.web.request_context import Context

router = APIRouter(tags=["overview"])


@router.get("/overview", response_model=Overview)
def overview(context: Context) -> Response:
    """The recent releases and how each stands, what is new in the newest, and the most severe issues."""
    return context.answer(lambda session: load_overview(session, context.known(session)), context.json)
