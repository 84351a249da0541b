"""`/api/v1/quality`: how often this project's own answers change where nothing did."""

from fastapi import APIRouter, Response

from knowngood.health.quality.service import Quality, load_quality
from knowngood.web.request_context import Context

router = APIRouter(tags=["quality"])


@router.get("/quality", response_model=Quality)
def quality(context: Context) -> Response:
    """The rate of false changes and its interval, what varies, what was trouble of ours, how far Pythons and devices
    agree, and where time went.
    """
    return context.answer(lambda session: load_quality(session, context.known(session).claims), context.json)
