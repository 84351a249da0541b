"""`/`, where the grid stood until 0.2: addresses of a part of it lead on to `/matrix`, for good."""

from http import HTTPStatus

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from knowngood.matrix.overview.page import MatrixPageQuery
from knowngood.web.urls import MATRIX


def moved(request: Request) -> Response | None:
    """Where to go on if an old address of the grid was asked for (None: it is none), with all that it says: what the
    grid does not know either is for it to refuse.
    """
    if not request.query_params.keys() & MatrixPageQuery.model_fields.keys():
        return None
    return RedirectResponse(f"{MATRIX}?{request.url.query}", HTTPStatus.PERMANENT_REDIRECT)
