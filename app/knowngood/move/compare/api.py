"""`/api/v1/compare`: what becomes of each issue from one build to another."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from knowngood.move.compare.schemas import CompareBody, compare_body
from knowngood.move.compare.service import CompareQuery, comparison_of, load_options
from knowngood.web.request_context import Context

router = APIRouter(tags=["compare"])


class CompareApiQuery(CompareQuery, extra="forbid"):
    """A misspelt parameter would silently widen the answer, so it is refused."""


@router.get("/compare", response_model=CompareBody)
def compare(context: Context, query: Annotated[CompareApiQuery, Query()]) -> Response:
    """Every issue on both builds, the most severe change first; only a proven pass counts as fixed."""
    return context.answer_in_turn(
        lambda session: comparison_of(
            context.known(session), load_options(session, query.hardware), query, context.now
        ),
        lambda compared: context.json(compare_body(compared, context.now, query.said)),
    )
