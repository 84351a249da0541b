"""`/api/v1/coverage`: every row with its pattern over the releases, and what is still open. `/api/v1/hygiene`: where
upstream's word and the measurements differ.
"""

from fastapi import APIRouter, Response

from knowngood.health.coverage.service import Coverage, Hygiene, coverage_of, hygiene_of, load_waiting
from knowngood.web.request_context import Context

router = APIRouter(tags=["coverage"])
hygiene_router = APIRouter(tags=["hygiene"])


@router.get("/coverage", response_model=Coverage)
def coverage(context: Context) -> Response:
    """Patterns by hardware class, and what is open: workarounds without a verdict, doubtful cells, unproven rows,
    contradicted claims, queued jobs that no worker can take.
    """
    return context.answer(
        lambda session: coverage_of(context.known(session), load_waiting(session, context.now)),
        context.json,
        f"{context.now:%H:%M}",  # a worker's absence is noticed by the clock alone
    )


@hygiene_router.get("/hygiene", response_model=Hygiene)
def hygiene(context: Context) -> Response:
    """Remarks for a keeper of the catalogue, by issue."""
    return context.answer(context.known, lambda known: context.json(hygiene_of(known)))
