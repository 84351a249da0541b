"""`/api/v1/attempts/{id}`: all evidence of one attempt."""

from fastapi import APIRouter, Response

from app.web.finding import find_attempt
from app.web.shapes.attempts import AttemptBody, attempt_body
from app.web.visit import Visiting

router = APIRouter()


@router.get("/attempts/{attempt}", response_model=AttemptBody)
def attempt(visit: Visiting, attempt: str) -> Response:
    with visit.reading() as session:
        detail = find_attempt(session, attempt)
    return visit.json(attempt_body(detail))
