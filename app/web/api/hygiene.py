"""`/api/v1/hygiene`: where upstream's word and the measurements drift apart."""

from fastapi import APIRouter, Response

from app.domain.hygiene import remarks_of
from app.web.shapes.hygiene import HygieneBody, remark_body
from app.web.visit import Visiting

router = APIRouter()


@router.get("/hygiene", response_model=HygieneBody)
def hygiene(visit: Visiting) -> Response:
    """Remarks for a keeper of the catalogue, by issue."""
    with visit.reading() as session:
        found = remarks_of(visit.known(session))
    return visit.json(HygieneBody(remarks=[remark_body(remark) for _, remark in found]))
