"""`/signs`: what the signs of the matrix mean."""

from fastapi import APIRouter, Response

from knowngood.web.html.status_labels import LEGEND
from knowngood.web.request_context import Context

router = APIRouter(include_in_schema=False)


@router.get("/signs")
def signs(context: Context) -> Response:
    return context.page("signs.html", LEGEND)
