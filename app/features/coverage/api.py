"""`/api/v1/coverage`: every row with its pattern over the releases, and what is still open."""

from fastapi import APIRouter, Response

from knowngood.app.features.coverage.schemas import CoverageBody, coverage_body
from knowngood.app.features.coverage.service import coverage_of, load_waiting
from knowngood.app.web.request_context import Context

router = APIRouter()


@router.get("/coverage", response_model=CoverageBody)
def coverage(context: Context) -> Response:
    """Patterns by hardware class, and what is open: workarounds without a verdict, doubtful cells, unproven rows,
    contradicted claims, queued jobs that no worker can take.
    """
    with context.reading(f"{context.now:%H:%M}") as session:  # a worker's absence is noticed by the clock alone
        found = coverage_of(context.known(session))
        waiting = load_waiting(session, context.now)
    return context.json(coverage_body(found, waiting))
