"""`/api/v1/gate`: may this environment be used? Answered from memory, as JSON or in the form that a CI system reads.

The decision is in the answer and in the header Knowngood-Decision; it never changes the status.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.types import Receive, Scope, Send

from knowngood.gate.decision import Ruling
from knowngood.gate.renderers import MEDIA, Form, render
from knowngood.gate.request import MOST_CHARACTERS, BadField, GateRequest, read_request, rule
from knowngood.matrix.overview.selection import Names, Words
from knowngood.store.knowledge.loader import KnowledgeSnapshot
from knowngood.web.app_state import state_of
from knowngood.web.errors import InvalidParameter, UnsupportedMediaType
from knowngood.web.middleware.asgi import HttpMiddleware
from knowngood.web.middleware.request_bodies import MOST_NAMES, look_at_json, media_of
from knowngood.web.parameter_validation import once
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API, DECISION

router = APIRouter(tags=["gate"])

_MOST_FILES = 10


# -- the question as HTTP takes it -------------------------------------------------------------------------------------


class FormQuery(BaseModel, extra="forbid"):
    format: Annotated[Form, Field(description="The form of the answer")] = Form.JSON
    advisory: Annotated[bool, Field(description="Say as a warning what would be an error, where the form can")] = False


_QUESTION = "Which build, and what to look at. What is watched takes the place of what a policy watches."
_MEANINGS = {
    "build": "A build id or a version of torch; a + may be %2B or a space",
    "python": "The Python, such as 3.12, where build or environment leaves it open",
    "platform": "The platform, such as linux-x86_64 or macos-arm64; held against what the environment states",
    "hardware": "Hardware classes, or GPUs such as H100; none means every measured one, the worst counts",
    "issues": "Issue ids, or the addresses of their reports; `all` for all of them",
    "component": "Every issue of these components",
    "package": "Every issue that needs these packages",
    "severity": "Every issue of this severity or a higher one",
    "watch": "Names of watch lists",
    "applied": "Workarounds in place, as issue=workaround",
    "base": "The build that `only_new` compares with",
    "only_new": "Let pass what fails on the base build too",
}
_MEANINGS_IN_A_BODY = {
    "environment": "A requirements or lock file, the output of `pip freeze`, a pyproject.toml, a script, ...",
    "groups": "Extras and groups of a pyproject.toml that count; none means all of them",
    "policy": "A policy, as knowngood.toml has it",
}
_FILES = ("environment", "policy")


def _fields(meanings: Mapping[str, str]) -> dict[str, Any]:
    """These fields of a question with the limits of HTTP, where lists may be written with commas."""
    kinds = get_type_hints(GateRequest)
    written: dict[object, Any] = {str: Words, tuple[str, ...]: Names}
    found: dict[str, Any] = {}
    for one in fields(GateRequest):
        if one.name in meanings:
            default: dict[str, Any] = {"default_factory": list} if one.default == () else {"default": one.default}
            kind = written.get(kinds[one.name], kinds[one.name])
            found[one.name] = (kind, Field(description=meanings[one.name], **default))
    return found


_BODY: type[BaseModel] = create_model(
    "GateBody",
    __config__=ConfigDict(extra="forbid"),
    __doc__=f"{_QUESTION} An environment or a policy may come as a file.",
    **_fields(_MEANINGS | _MEANINGS_IN_A_BODY),
)
if TYPE_CHECKING:  # to which a model that is made here is no type
    _GateQuery = FormQuery
else:
    _GateQuery = create_model("GateQuery", __base__=FormQuery, __doc__=_QUESTION, **_fields(_MEANINGS))


def _schema(*, is_form: bool) -> dict[str, Any]:
    """The body with its files told in place: OpenAPI has no room for definitions here."""
    schema = _BODY.model_json_schema()
    file = schema.pop("$defs")["AttachedFile"]
    for name in _FILES:
        in_json = {**schema["properties"][name], "anyOf": [file, {"type": "null"}]}
        in_form = {"type": "string", "format": "binary", "description": _MEANINGS_IN_A_BODY[name]}
        schema["properties"][name] = in_form if is_form else in_json
    return schema


_REQUEST = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": _schema(is_form=False)},
            "multipart/form-data": {"schema": _schema(is_form=True)},
        },
    }
}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The decision, whatever it is",
        "headers": {DECISION: {"description": "pass, block or insufficient_evidence", "schema": {"type": "string"}}},
        "content": {
            media.partition(";")[0]: {"schema": {"type": "object" if media.endswith("json") else "string"}}
            for form, media in MEDIA.items()
            if form != "json"
        },
    },
    400: {"description": "A form that cannot be read"},
    413: {"description": "A body larger than this server takes"},
}


# -- routes ------------------------------------------------------------------------------------------------------------


@router.get("/gate", response_model=Ruling, responses=_ANSWER)
def gate(context: Context, query: Annotated[_GateQuery, Query()]) -> Response:
    """May this build be used? The decision is in the answer; it never changes the status."""

    def answer(snapshot: KnowledgeSnapshot) -> Response:
        request = read_request(query.model_dump(exclude=set(FormQuery.model_fields)))
        return _answer(context, snapshot, request, query)

    return context.answer_from(answer)


async def _body(request: Request) -> bytes:
    return await request.body()


def _request(request: Request, body: Annotated[bytes, Depends(_body)]) -> GateRequest:
    """Read a body. In a thread: what nobody means to send takes long to be read."""
    kind = request.headers.get("content-type", "")
    media = media_of(kind)
    if media == "multipart/form-data":
        fields = _form_fields(kind, body)
    elif media in {"application/json", ""}:
        fields = _json_fields(body, is_told=bool(media))
    else:
        raise UnsupportedMediaType(
            f'"{media[:80]}" is not read here; send application/json or multipart/form-data', "body"
        )
    try:
        return read_request(dict(_BODY.model_validate(fields)))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = (str(part)[:80] for part in first["loc"])
        raise InvalidParameter(first["msg"], ".".join(["body", *place])) from None


@router.post("/gate", response_model=Ruling, responses=_ANSWER, openapi_extra=_REQUEST, operation_id="post_gate")
def gate_with_files(
    context: Context,
    request: Annotated[GateRequest, Depends(_request)],
    body: Annotated[bytes, Depends(_body)],
    query: Annotated[FormQuery, Query()],
) -> Response:
    """The same with an environment or a policy as files: as JSON, or as a form (`curl -F environment=@uv.lock`)."""
    return context.answer_from(lambda snapshot: _answer(context, snapshot, request, query), body)


def _answer(context: RequestContext, snapshot: KnowledgeSnapshot, request: GateRequest, query: FormQuery) -> Response:
    try:
        ruling = replace(rule(request, snapshot.knowledge, context.now), known_at=snapshot.known_at)
    except BadField as error:
        raise InvalidParameter(error.message, error.field) from None
    text = render(ruling, query.format, context.base, where=request.where, advisory=query.advisory)
    return context.ruling(text, MEDIA[query.format], {DECISION: ruling.decision.value})


# -- reading a body ----------------------------------------------------------------------------------------------------


def _json_fields(body: bytes, *, is_told: bool) -> Mapping[str, Any]:
    """`is_told` where the question said that it is JSON, so that it was looked at as such."""
    if not is_told:
        look_at_json(body)
    try:
        found = json.loads(body.decode(), object_pairs_hook=once)
    except ValueError as error:
        raise InvalidParameter(f"is no JSON: {error!s:.200}", "body") from None
    if not isinstance(found, dict):
        raise InvalidParameter("a question is a JSON object", "body")
    if not isinstance(found.get("only_new", False), bool):
        raise InvalidParameter("write true or false", "body.only_new")
    return found


def _form_fields(kind: str, body: bytes) -> Mapping[str, Any]:
    try:
        parts = asyncio.run(_parts(kind, body))
    except MultiPartException as error:
        raise InvalidParameter(f"is no form: {error.message[:200]}", "body") from None
    return {name: values if name in _LISTS else _only(name, values) for name, values in parts.items()}


async def _parts(kind: str, body: bytes) -> Mapping[str, list[Any]]:
    async def whole() -> AsyncGenerator[bytes, None]:
        yield body

    headers, limits = Headers({"Content-Type": kind}), {"max_files": _MOST_FILES, "max_fields": MOST_NAMES}
    parser = MultiPartParser(headers, whole(), **limits, max_part_size=MOST_CHARACTERS)
    parser.spool_max_size = 1 << 30  # no body is as large, so that nothing is put into a file
    form = await parser.parse()
    try:
        return {name: [_value(name, value) for value in form.getlist(name)] for name in form}
    finally:
        await form.close()


_LISTS = frozenset(one.name for one in fields(GateRequest) if one.default == ())


def _only(name: str, values: Sequence[Any]) -> Any:  # noqa: ANN401 - checked with the other fields
    if len(values) > 1:
        raise InvalidParameter("appears twice", f"body.{name[:80]}")
    return values[0]


def _value(name: str, value: str | UploadFile) -> Any:  # noqa: ANN401 - checked with the other fields
    """A file as its name and text; a text under a file's name is one without a name."""
    if isinstance(value, str):
        return {"content": value} if name in _FILES else value
    try:
        return {"name": value.filename or "", "content": value.file.read().decode()}
    except UnicodeDecodeError as error:
        raise InvalidParameter(f"is no UTF-8 from byte {error.start} on", f"body.{name[:80]}") from None


# -- the answer to a question that was asked a moment ago --------------------------------------------------------------


class GateFastPath(HttpMiddleware):
    """Answers a question that was asked a moment ago before any route looks at it. Stands behind AuthMiddleware, so
    that nobody is told what they may not read; never waits for the store.

    CI farms ask one question thousands of times. Finding the route, checking parameters that were right the first time
    and waiting for a thread took as long as all the rest of such an answer (2026-11-21: 2.3 ms, of which 1.2 ms were
    these).
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await ((_at_hand(scope) if scope["path"] == f"{API}/gate" else None) or self.app)(scope, receive, send)


def _at_hand(scope: Scope) -> Response | None:
    """None where the answer has to be made, or the store is to be asked first whether it has moved."""
    state = state_of(scope["app"])
    snapshot = state.knowledge.at_hand() if scope["method"] == "GET" else None
    return RequestContext(Request(scope), state).stored_decision(snapshot) if snapshot else None
