"""`/api/v1/compare`: what becomes of each issue from one build to another."""

from fastapi import APIRouter, Response

from knowngood.move.compare.service import OfTwoBuilds, comparison_of
from knowngood.move.schemas import CompareBody, compare_body
from knowngood.web.request_context import Context

router = APIRouter(tags=["compare"])


@router.get("/compare", response_model=CompareBody)
def compare(context: Context, request: OfTwoBuilds) -> Response:
    """Every issue on both builds, the most severe change first; only a proven pass counts as fixed."""
    return context.answer_in_turn(
        lambda session: comparison_of(request, context.known(session), context.now),
        lambda compared: context.json(compare_body(compared, context.now, request.narrowing)),
    )
