"""`/api/v1/hygiene`: where upstream's word and the measurements drift apart."""

from fastapi import APIRouter, Response

from knowngood.app.features.coverage.hygiene import remarks_of
from knowngood.app.features.coverage.hygiene_schemas import HygieneBody, remark_body
from knowngood.app.web.request_context import Context

router = APIRouter()


@router.get("/hygiene", response_model=HygieneBody)
def hygiene(context: Context) -> Response:
    """Remarks for a keeper of the catalogue, by issue."""
    with context.reading() as session:
        found = remarks_of(context.known(session))
    return context.json(HygieneBody(remarks=[remark_body(remark) for _, remark in found]))
