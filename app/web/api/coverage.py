"""`/api/v1/coverage`: every row with its pattern over the releases, and what is still open."""

from fastapi import APIRouter, Response

from app.web.covering import load_coverage
from app.web.shapes.coverage import CoverageBody, coverage_body
from app.web.visit import Visiting

router = APIRouter()


@router.get("/coverage", response_model=CoverageBody)
def coverage(visit: Visiting) -> Response:
    """Patterns by hardware class, workarounds without a verdict, doubtful cells, unproven rows, contradicted claims."""
    with visit.reading() as session:
        found = load_coverage(session)
    return visit.json(coverage_body(found))
