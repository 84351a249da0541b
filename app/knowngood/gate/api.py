"""`/api/v1/gate`: may this environment be used? Answered from memory, as JSON or in the form that a CI system reads.

The decision is in the answer and in the header Knowngood-Decision; it never changes the status.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Annotated, Any, get_type_hints

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.types import Receive, Scope, Send

from knowngood.gate.decision import Ruling
from knowngood.gate.renderers import MEDIA, Form, render
from knowngood.gate.request import MOST_CHARACTERS, GateRequest, read_request, rule
from knowngood.matrix.overview.selection import Names, Words
from knowngood.store.knowledge.loader import KnowledgeSnapshot
from knowngood.web.app_state import state_of
from knowngood.web.errors import InvalidParameter, UnsupportedMediaType
from knowngood.web.middleware import HttpMiddleware
from knowngood.web.middleware.request_bodies import MOST_NAMES, look_at_json, media_of
from knowngood.web.parameter_validation import once
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API, DECISION

router = APIRouter(tags=["gate"])

_MOST_FILES = 10


# -- the question as HTTP takes it -------------------------------------------------------------------------------------


FormOfAnswer = Annotated[Form, Query(alias="format", description="The form of the answer")]
IsAdvisory = Annotated[bool, Query(description="Say as a warning what would be an error, where the form can")]

_QUESTION = (
    "Which build, and what to look at. What is watched takes the place of what a policy watches. An environment or a "
    "policy may come as a file."
)
_MEANINGS = {
    "build": "A build id or a version of torch; a + may be %2B or a space",
    "environment": "A requirements or lock file, the output of `pip freeze`, a pyproject.toml, a script, ...",
    "python": "The Python, such as 3.12, where build or environment leaves it open",
    "platform": "The platform, such as linux-x86_64 or macos-arm64; held against what the environment states",
    "groups": "Extras and groups that are installed, of a pyproject.toml or a lock; none means all of them",
    "policy": "A policy, as knowngood.toml has it",
    "hardware": "Hardware classes, or GPUs such as H100; none means every measured one, the worst counts",
    "issues": "Issue ids, or the addresses of their reports; `all` for all of them",
    "component": "Every issue of these components",
    "package": "Every issue that needs these packages",
    "severity": "Every issue of this severity or a higher one",
    "watch": "Names of watch lists",
    "applied": "Workarounds in place, as issue=workaround",
    "base": "The build to compare with; what fails there too is not new",
    "base_environment": "A file that states what to compare with, as `environment` does, in place of `base`",
    "only_new": "Let pass what fails on the base build too",
}
_FILES = ("environment", "policy", "base_environment")
_IN_A_BODY = (*_FILES, "groups")


def _model() -> type[BaseModel]:
    """A question with the limits of HTTP, where lists may be written with commas."""
    kinds = get_type_hints(GateRequest)
    written: dict[object, Any] = {str: Words, tuple[str, ...]: Names}
    definitions: dict[str, Any] = {}
    for field in fields(GateRequest):
        default: dict[str, Any] = {"default_factory": list} if field.default == () else {"default": field.default}
        kind = written.get(kinds[field.name], kinds[field.name])
        definitions[field.name] = (kind, Field(description=_MEANINGS[field.name], **default))
    return create_model("GateBody", __config__=ConfigDict(extra="forbid"), __doc__=_QUESTION, **definitions)


_QUESTION_MODEL = _model()
_LISTS = frozenset(field.name for field in fields(GateRequest) if field.default == ())


def _schema(*, is_form: bool) -> dict[str, Any]:
    """The body, with what a file is in its place: OpenAPI has no room for definitions here."""
    schema = _QUESTION_MODEL.model_json_schema()
    file = schema.pop("$defs")["AttachedFile"]
    for name in _FILES:
        in_json = {**schema["properties"][name], "anyOf": [file, {"type": "null"}]}
        in_form = {"type": "string", "format": "binary", "description": _MEANINGS[name]}
        schema["properties"][name] = in_form if is_form else in_json
    return schema


_PARAMETERS = {
    "parameters": [
        {"name": name, "in": "query", "required": False, "schema": schema, "description": schema["description"]}
        for name, schema in _QUESTION_MODEL.model_json_schema()["properties"].items()
        if name not in _IN_A_BODY
    ]
}
_REQUEST = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": _schema(is_form=False)},
            "multipart/form-data": {"schema": _schema(is_form=True)},
        },
    }
}
_JSON = Ruling | list[dict[str, Any]]  # GitLab's code quality report is a list, and of the same media type
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The decision, whatever it is",
        "headers": {DECISION: {"description": "pass, block or insufficient_evidence", "schema": {"type": "string"}}},
        "content": {
            media.partition(";")[0]: {"schema": {"type": "object" if media.endswith("json") else "string"}}
            for form, media in MEDIA.items()
            if media != MEDIA[Form.JSON]
        },
    },
    400: {"description": "A form that cannot be read"},
    413: {"description": "A body larger than this server takes"},
}


# -- routes ------------------------------------------------------------------------------------------------------------


async def _from_address(request: Request) -> GateRequest:
    """Waits for nothing, so it need not cost a thread."""
    query = request.query_params
    given = _MEANINGS.keys() & query.keys() - set(_IN_A_BODY)
    return _read({name: query.getlist(name) if name in _LISTS else query[name] for name in given}, "query")


@router.get("/gate", response_model=_JSON, responses=_ANSWER, openapi_extra=_PARAMETERS)
def gate(
    context: Context,
    request: Annotated[GateRequest, Depends(_from_address)],
    form: FormOfAnswer = Form.JSON,
    *,
    advisory: IsAdvisory = False,
) -> Response:
    """May this build be used? The decision is in the answer; it never changes the status."""
    return context.answer_from(lambda snapshot: _answer(context, snapshot, request, form, advisory=advisory))


async def _body(request: Request) -> bytes:
    return await request.body()


def _from_body(request: Request, body: Annotated[bytes, Depends(_body)]) -> GateRequest:
    """In a thread: what nobody means to send takes long to be read."""
    kind = request.headers.get("content-type", "")
    media = media_of(kind)
    if media == "multipart/form-data":
        return _read(_form_fields(kind, body), "body")
    if media in {"application/json", ""}:
        return _read(_json_fields(body, is_declared=bool(media)), "body")
    raise UnsupportedMediaType(f'"{media[:80]}" is not read here; send application/json or multipart/form-data', "body")


@router.post("/gate", response_model=_JSON, responses=_ANSWER, openapi_extra=_REQUEST, operation_id="post_gate")
def gate_with_files(
    context: Context,
    request: Annotated[GateRequest, Depends(_from_body)],
    body: Annotated[bytes, Depends(_body)],
    form: FormOfAnswer = Form.JSON,
    *,
    advisory: IsAdvisory = False,
) -> Response:
    """The same with an environment or a policy as files: as JSON, or as a form (`curl -F environment=@uv.lock`)."""
    return context.answer_from(lambda snapshot: _answer(context, snapshot, request, form, advisory=advisory), body)


def _read(given: Mapping[str, Any], place: str) -> GateRequest:
    """Check a question as HTTP takes it. Raises RequestValidationError, which names the fields in that place."""
    try:
        return read_request(dict(_QUESTION_MODEL.model_validate(given)))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError([{**fault, "loc": (place, *fault["loc"])} for fault in faults]) from None


def _answer(
    context: RequestContext, snapshot: KnowledgeSnapshot, request: GateRequest, form: Form, *, advisory: bool
) -> Response:
    ruling = replace(rule(request, snapshot.knowledge, context.now), known_at=snapshot.known_at)
    text = render(ruling, form, context.base, where=request.where, advisory=advisory)
    return context.ruling(text, MEDIA[form], {DECISION: ruling.decision.value})


# -- reading a body ----------------------------------------------------------------------------------------------------


def _json_fields(body: bytes, *, is_declared: bool) -> Mapping[str, Any]:
    """`is_declared` where the question said that it is JSON, so that it was looked at as such."""
    if not is_declared:
        look_at_json(body)
    try:
        question = json.loads(body.decode(), object_pairs_hook=once)
    except ValueError as error:
        raise InvalidParameter(f"is no JSON: {error!s:.200}", "body") from None
    if not isinstance(question, dict):
        raise InvalidParameter("a question is a JSON object", "body")
    if not isinstance(question.get("only_new", False), bool):
        raise InvalidParameter("write true or false", "body.only_new")
    return question


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
