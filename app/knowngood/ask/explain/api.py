"""`/api/v1/errors`: which known issue a traceback or a log is. Nothing that is sent here is kept or logged."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from knowngood.ask.explain.answer import Explanation
from knowngood.ask.explain.service import explain_text
from knowngood.domain.issue import SignatureKind
from knowngood.matrix.overview.selection import Words
from knowngood.store.queries import load_issues
from knowngood.web.errors import InvalidParameter, UnsupportedMediaType
from knowngood.web.json_body import Body, IssueUrl, read_from
from knowngood.web.middleware.request_bodies import media_of
from knowngood.web.request_context import Context
from knowngood.web.urls import API

router = APIRouter(tags=["errors"])

ERRORS = f"{API}/errors"


class SignatureLineBody(Body):
    """`pattern` is a regular expression; empty where the failure itself is the signature."""

    issue: str = read_from("id")
    title: str
    kind: SignatureKind = read_from("signature", "kind")
    pattern: str = read_from("signature", "pattern")
    silent: bool
    url: IssueUrl = read_from("id")


class SignaturesBody(Body):
    signatures: list[SignatureLineBody]


async def _body(request: Request) -> bytes:
    return await request.body()


def _sent(request: Request, body: Annotated[bytes, Depends(_body)]) -> str:
    """Plain text in whatever encoding, or JSON, an object with a `text`; what is empty or no text is refused."""
    text = _text(media_of(request.headers.get("content-type", "")), body)
    if not text.strip():
        raise InvalidParameter("is empty; it holds the traceback or log that is to be explained", "body")
    if "\0" in text:
        raise InvalidParameter("holds a NUL byte, which no text has", "body")
    return text


def _text(kind: str, body: bytes) -> str:
    if kind in {"text/plain", ""}:
        return body.decode(errors="replace")
    if kind != "application/json":
        raise UnsupportedMediaType(
            f'"{kind[:80]}" is not read here; send text/plain, or application/json with a text', "body"
        )
    try:
        fields = json.loads(body)
    except ValueError:
        raise InvalidParameter("is no JSON", "body") from None
    if not isinstance(fields, dict) or set(fields) != {"text"} or not isinstance(fields["text"], str):
        raise InvalidParameter('is an object with one text: {"text": "Traceback ..."}', "body")
    return fields["text"].encode(errors="replace").decode()


_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["text"],
    "additionalProperties": False,
    "properties": {"text": {"type": "string", "description": "A traceback, a log, the output of collect_env"}},
}
_REQUEST = {
    "requestBody": {
        "required": True,
        "content": {"text/plain": {"schema": {"type": "string"}}, "application/json": {"schema": _SCHEMA}},
    }
}


@router.get("/errors", response_model=SignaturesBody)
def get_errors(context: Context) -> Response:
    """The signature of each issue, by which its failures are known."""
    return context.answer(
        load_issues,
        lambda issues: context.json(SignaturesBody(signatures=[SignatureLineBody.of(issue) for issue in issues])),
    )


@router.post("/errors", response_model=Explanation, openapi_extra=_REQUEST, operation_id="post_errors")
def errors(
    context: Context,
    text: Annotated[str, Depends(_sent)],
    build: Annotated[Words, Query(description="Your build, where the text does not tell it")] = "",
) -> Response:
    """Which issue is this failure? By signature, else the nearest by its words. Nothing sent is kept or logged."""
    return context.json(explain_text(context.state, text, build)[0])
