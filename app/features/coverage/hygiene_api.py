"""`/api/v1/hygiene`: where upstream's word and the measurements drift apart."""

from fastapi import APIRouter, Response

from knowngood.app.features.coverage.hygiene import remarks_of
from knowngood.app.features.coverage.hygiene_schemas import HygieneBody, remark_body
from knowngood.app.web.request_context import Visiting

router = APIRouter()


@router.get("/hygiene", response_model=HygieneBody)
def hygiene(visit: Visiting) -> Response:
    """Remarks for a keeper of the catalogue, by issue."""
    with visit.reading() as session:
        found = remarks_of(visit.known(session))
    return visit.json(HygieneBody(remarks=[remark_body(remark) for _, remark in found]))
