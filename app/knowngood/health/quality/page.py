"""`/quality`: how often this project's own answers change where nothing did."""

from fastapi import APIRouter, Response

from knowngood.domain.verdicts.inference import AGREEMENT
from knowngood.health.quality.service import load_quality
from knowngood.web.request_context import Context

router = APIRouter(include_in_schema=False)


@router.get("/quality")
def quality(context: Context) -> Response:
    return context.answer(
        lambda session: load_quality(session, context.known(session).claims),
        lambda found: context.page("quality.html", found, least=AGREEMENT),
    )
