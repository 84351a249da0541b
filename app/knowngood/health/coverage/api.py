"""`/api/v1/coverage`: every row with its pattern over the releases, and what is still open. `/api/v1/hygiene`: where
upstream's word and the measurements differ.
"""

from fastapi import APIRouter, Response

from knowngood.health.coverage.hygiene import remarks_of
from knowngood.health.coverage.schemas import CoverageBody, HygieneBody, RemarkBody, coverage_body
from knowngood.health.coverage.service import coverage_of, load_waiting
from knowngood.web.request_context import Context

router = APIRouter(tags=["coverage"])
hygiene_router = APIRouter(tags=["hygiene"])


@router.get("/coverage", response_model=CoverageBody)
def coverage(context: Context) -> Response:
    """Patterns by hardware class, and what is open: workarounds without a verdict, doubtful cells, unproven rows,
    contradicted claims, queued jobs that no worker can take.
    """
    return context.answer(
        lambda session: (coverage_of(context.known(session)), load_waiting(session, context.now)),
        lambda found: context.json(coverage_body(*found)),
        f"{context.now:%H:%M}",  # a worker's absence is noticed by the clock alone
    )


@hygiene_router.get("/hygiene", response_model=HygieneBody)
def hygiene(context: Context) -> Response:
    """Remarks for a keeper of the catalogue, by issue."""
    return context.answer(
        lambda session: remarks_of(context.known(session)),
        lambda found: context.json(HygieneBody(remarks=[RemarkBody.of(remark) for _, remark in found])),
    )
