"""How OpenAPI documents refusals, for every route of the API."""

from http import HTTPStatus
from typing import Any

from knowngood.web.errors import PROBLEM_MEDIA

DETAILS: dict[HTTPStatus, tuple[str, str]] = {
    HTTPStatus.UNAUTHORIZED: (
        "Reads are closed here, or this needs a token",
        "this needs a token; send it as a bearer",
    ),
    HTTPStatus.FORBIDDEN: ("The token does not allow this", 'this needs the scope "triage"'),
    HTTPStatus.NOT_FOUND: (
        "No such thing here; `suggestions` are the nearest addresses",
        'no issue is called "pytorch-15129" here',
    ),
    HTTPStatus.METHOD_NOT_ALLOWED: ("The address does not take this method; `Allow` says which", "Method Not Allowed"),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: (
        "The body is larger than what is taken here",
        "the body is larger than 8 MiB",
    ),
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: ("The body is of a kind that is not read here", "send application/json"),
    HTTPStatus.UNPROCESSABLE_ENTITY: (
        "A parameter or a part of the body cannot be understood, or names nothing we have; `errors` names it",
        'hardware: hardware "tpu" was never measured here; known: cpu-x86_64',
    ),
    HTTPStatus.TOO_MANY_REQUESTS: ("More requests than are taken at once; `Retry-After` says when", "wait 2 s"),
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: (
        "The address and the headers are longer than is taken here",
        "the head is longer than 64 KiB; send a long list as a body",
    ),
    HTTPStatus.SERVICE_UNAVAILABLE: (
        "The database cannot be used at the moment; `Retry-After` says when to try again",
        "The database cannot be used at the moment; nothing is lost",
    ),
}

WITH_BODY = frozenset({HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE})
"""Only where something is sent along."""

_SUGGESTED = "/issues/pytorch-151290"


def refusal(status: HTTPStatus, path: str = "/", description: str = "") -> dict[str, Any]:
    """How the document tells of a refusal: what it means, its shape, and one as it comes."""
    usual, detail = DETAILS.get(status, (status.phrase, status.description or status.phrase))
    field, _, said = detail.partition(": ")
    example = {
        "type": "about:blank",
        "title": status.phrase,
        "status": int(status),
        "detail": detail,
        "instance": path,
        "suggestions": [_SUGGESTED] if status is HTTPStatus.NOT_FOUND else [],
        "errors": [{"field": field, "detail": said}] if said else [],
        "request_id": "5e5b1c1f0d8b4b0f9a5c3f4d2e6a7b88",
    }
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}
    told: dict[str, Any] = {"description": description or usual, "content": {PROBLEM_MEDIA: problem}}
    if status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}:
        told["headers"] = {"Retry-After": {"description": "Seconds", "schema": {"type": "integer", "minimum": 1}}}
    return told


REFUSALS: dict[int | str, dict[str, Any]] = {
    int(status): refusal(status)
    for status in (HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE)
}
