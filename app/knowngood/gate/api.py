"""`/api/v1/gate`: may this environment be used? Answered from memory, as JSON or in the form that a CI system reads.

The decision is in the answer and in the header Knowngood-Decision; it never changes the status.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from knowngood.gate.decision import Ruling
from knowngood.gate.renderers import MEDIA, Form, render
from knowngood.gate.request import GateRequest, read_request, rule
from knowngood.matrix.overview.selection import Names, Words
from knowngood.store.knowledge.loader import KnowledgeSnapshot
from knowngood.web.errors import InvalidParameter, UnsupportedMediaType
from knowngood.web.middleware.request_bodies import MOST_NAMES, look_at_json, media_of
from knowngood.web.parameter_validation import once
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import DECISION

router = APIRouter(tags=["gate"])


_MOST_CHARACTERS = 6_000_000  # of a lock file; uv's own of a large project has 1,000,000
_MOST_FILES = 10


class FileBody(BaseModel, extra="forbid"):
    """A file: its name says what it may be (`uv.lock`), its content is text."""

    name: Annotated[str, Field(max_length=300)] = ""
    content: Annotated[str, Field(max_length=_MOST_CHARACTERS)]


class GateQuery(BaseModel):
    """Which build, and what to look at. What is watched takes the place of what a policy watches."""

    model_config = ConfigDict(extra="forbid")

    build: Annotated[Words, Field(description="A build id or a version of torch; a + may be %2B or a space")] = ""
    python: Annotated[
        Words, Field(description="The Python, such as 3.12, where build or environment leaves it open")
    ] = ""
    platform: Annotated[
        Words,
        Field(
            description="The platform, such as linux-x86_64 or macos-arm64; held against what the environment states"
        ),
    ] = ""
    hardware: Annotated[
        Names,
        Field(description="Hardware classes, or GPUs such as H100; none means every measured one, the worst counts"),
    ]
    issues: Annotated[Names, Field(description="Issue ids, or the addresses of their reports; `all` for all of them")]
    component: Annotated[Names, Field(description="Every issue of these components")]
    package: Annotated[Names, Field(description="Every issue that needs these packages")]
    severity: Annotated[Words, Field(description="Every issue of this severity or a higher one")] = ""
    watch: Annotated[Names, Field(description="Names of watch lists")]
    applied: Annotated[Names, Field(description="Workarounds in place, as issue=workaround")]
    base: Annotated[Words, Field(description="The build that `only_new` compares with")] = ""
    only_new: Annotated[bool, Field(description="Let pass what fails on the base build too")] = False


class GateBody(GateQuery):
    """The same, and an environment or a policy as files."""

    environment: Annotated[
        FileBody | None,
        Field(description="A requirements or lock file, the output of `pip freeze`, a pyproject.toml, a script, ..."),
    ] = None
    groups: Annotated[
        Names, Field(description="Extras and groups of a pyproject.toml that count; none means all of them")
    ]
    policy: Annotated[FileBody | None, Field(description="A policy, as knowngood.toml has it")] = None


class FormQuery(BaseModel, extra="forbid"):
    format: Annotated[Form, Field(description="The form of the answer")] = Form.JSON
    advisory: Annotated[bool, Field(description="Say as a warning what would be an error, where the form can")] = False


class GateGet(GateQuery, FormQuery):
    pass


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


@router.get("/gate", response_model=Ruling, responses=_ANSWER)
def gate(context: Context, query: Annotated[GateGet, Query()]) -> Response:
    """May this build be used? The decision is in the answer; it never changes the status."""
    return context.answer_from(
        lambda snapshot: _answer(
            context, snapshot, read_request(query.model_dump(include=set(GateQuery.model_fields))), query
        )
    )


async def _body(request: Request) -> bytes:
    return await request.body()


def _asked(request: Request, body: Annotated[bytes, Depends(_body)]) -> GateRequest:
    """In a thread: what nobody means to send takes long to be read."""
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
    return read_request(_checked(fields).model_dump())


def _body_schema() -> dict[str, Any]:
    """GateBody with its files told in place: OpenAPI has no room for definitions here."""
    schema = GateBody.model_json_schema()
    file = schema.pop("$defs")["FileBody"]
    for name in ("environment", "policy"):
        field = schema["properties"][name]
        field["anyOf"] = [file, {"type": "null"}]
    return schema


def _form_schema() -> dict[str, Any]:
    schema = _body_schema()
    for name in ("environment", "policy"):
        described = schema["properties"][name].get("description", "")
        schema["properties"][name] = {"type": "string", "format": "binary", "description": described}
    return schema


_REQUEST = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": _body_schema()},
            "multipart/form-data": {"schema": _form_schema()},
        },
    }
}


@router.post("/gate", response_model=Ruling, responses=_ANSWER, openapi_extra=_REQUEST, operation_id="post_gate")
def gate_with_files(
    context: Context,
    asked: Annotated[GateRequest, Depends(_asked)],
    body: Annotated[bytes, Depends(_body)],
    query: Annotated[FormQuery, Query()],
) -> Response:
    """The same with an environment or a policy as files: as JSON, or as a form (`curl -F environment=@uv.lock`)."""
    return context.answer_from(lambda snapshot: _answer(context, snapshot, asked, query), body)


def _answer(context: RequestContext, snapshot: KnowledgeSnapshot, asked: GateRequest, query: FormQuery) -> Response:
    ruling = replace(rule(asked, snapshot.knowledge, context.now), known_at=snapshot.known_at)
    where = asked.environment.name if asked.environment else ""
    text = render(ruling, query.format, context.base, where=where, advisory=query.advisory)
    return context.ruling(text, MEDIA[query.format], {DECISION: ruling.decision.value})


# -- reading a body ----------------------------------------------------------------------------------------------------


def _json_fields(body: bytes, *, is_told: bool) -> Mapping[str, Any]:
    """`is_told` where the question said that it is JSON, so that it was looked at as such."""
    if not is_told:
        look_at_json(body)
    try:
        fields = json.loads(body.decode(), object_pairs_hook=once)
    except ValueError as error:
        raise InvalidParameter(f"is no JSON: {error!s:.200}", "body") from None
    if not isinstance(fields, dict):
        raise InvalidParameter("a question is a JSON object", "body")
    if not isinstance(fields.get("only_new", False), bool):
        raise InvalidParameter("write true or false", "body.only_new")
    return fields


class _InMemory(MultiPartParser):
    spool_max_size = 1 << 30  # no body is as large, so that nothing is put into a file


def _form_fields(kind: str, body: bytes) -> Mapping[str, Any]:
    try:
        parts = asyncio.run(_parts(kind, body))
    except MultiPartException as error:
        raise InvalidParameter(f"is no form: {error.message[:200]}", "body") from None
    return {name: values if name in _LISTS else _only(name, values) for name, values in parts.items()}


async def _parts(kind: str, body: bytes) -> Mapping[str, list[Any]]:
    async def whole() -> AsyncGenerator[bytes, None]:
        yield body

    parser = _InMemory(
        Headers({"Content-Type": kind}),
        whole(),
        max_files=_MOST_FILES,
        max_fields=MOST_NAMES,
        max_part_size=_MOST_CHARACTERS,
    )
    form = await parser.parse()
    try:
        return {name: [_value(name, value) for value in form.getlist(name)] for name in form}
    finally:
        await form.close()


_LISTS = frozenset(name for name, field in GateBody.model_fields.items() if field.default_factory is list)


def _only(name: str, values: Sequence[Any]) -> Any:  # noqa: ANN401 - checked with the other fields
    if len(values) > 1:
        raise InvalidParameter("appears twice", f"body.{name[:80]}")
    return values[0]


def _value(name: str, value: str | UploadFile) -> Any:  # noqa: ANN401 - checked with the other fields
    """A file as its name and text; a text under a file's name is one without a name."""
    if isinstance(value, str):
        return {"content": value} if name in {"environment", "policy"} else value
    try:
        return {"name": value.filename or "", "content": value.file.read().decode()}
    except UnicodeDecodeError as error:
        raise InvalidParameter(f"is no UTF-8 from byte {error.start} on", f"body.{name[:80]}") from None


def _checked(fields: Mapping[str, Any]) -> GateBody:
    try:
        return GateBody.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = (str(part)[:80] for part in first["loc"])
        raise InvalidParameter(first["msg"], ".".join(["body", *place])) from None
