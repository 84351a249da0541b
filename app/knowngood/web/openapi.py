"""`/openapi.json`: what the routes say of themselves, and what all of them have in common: refusals and examples.

FastAPI takes 0.4 s to ask the routes (one core of a shared machine, 2026-11-23), so what they said is kept in
`openapi.json`, and a test holds it to them. A route that is added later gets its refusals from here, and its example
from `examples.json` by its operationId.
"""

import json
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from knowngood.web.errors import PROBLEM_MEDIA, FieldFault, Problem
from knowngood.web.urls import API

ROUTES = Path(__file__).parent / "openapi.json"
EXAMPLES = Path(__file__).parent / "examples.json"

_REF = "#/components/schemas/{model}"


def name_operation(route: APIRoute) -> str:
    """`get_matrix`: stable for as long as the function that answers keeps its name."""
    method = min(route.methods or {"get"}).lower()
    return route.name if route.name.startswith(f"{method}_") else f"{method}_{route.name}"


def install(app: FastAPI) -> None:
    """Let the application serve this document, which is put together when it is first asked for."""
    setattr(app, "openapi", partial(_document, app))  # noqa: B010 - mypy lets no method be assigned


def _document(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is not None:
        return app.openapi_schema
    document: dict[str, Any] = json.loads(ROUTES.read_text())
    document["info"]["version"] = app.version
    examples = json.loads(EXAMPLES.read_text())
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for model in (Problem, FieldFault):
        schema = model.model_json_schema(ref_template=_REF, mode="serialization")
        schemas[model.__name__] = {key: value for key, value in schema.items() if key != "$defs"}
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            _add_refusals(path, operation)
            _add_security(method, operation)
            _add_examples(operation, examples.get(operation["operationId"], {}))
    app.openapi_schema = document
    return document


def _add_refusals(path: str, operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    for status in _statuses(path, operation):
        response = responses.get(str(status), {})
        responses[str(status)] = {**response, **refusal(status, path, response.get("description", ""))}
    operation["responses"] = dict(sorted(responses.items()))


def _add_security(method: str, operation: dict[str, Any]) -> None:
    """Reads may go without a token where the installation leaves them open; writes never do."""
    is_read = method == "get" or operation["operationId"].startswith(("post_gate", "post_errors"))
    operation["security"] = [{}, {"token": []}] if is_read else [{"token": []}]


def _statuses(path: str, operation: Mapping[str, Any]) -> list[HTTPStatus]:
    """List the refusals of a route: those that it declares, which are made whole, and the common ones of every route of
    the API.
    """
    statuses = {HTTPStatus(int(status)) for status in operation["responses"] if status[0] in "45"}
    if path.startswith(f"{API}/"):
        statuses |= DETAILS.keys() - WITH_BODY if "requestBody" not in operation else set(DETAILS)
    return sorted({*statuses, HTTPStatus.METHOD_NOT_ALLOWED})


def _add_examples(operation: dict[str, Any], example: Mapping[str, Any]) -> None:
    """`asked` by the parameter's name, `sent` and `answer` by media type."""
    for parameter in operation.get("parameters", ()):
        if parameter["name"] in example.get("asked", {}):
            parameter["example"] = example["asked"][parameter["name"]]
    for media, value in example.get("sent", {}).items():
        operation["requestBody"]["content"].setdefault(media, {})["example"] = value
    for status in ("200", "201", "202"):
        content = operation["responses"].get(status, {}).get("content", {})
        for media, value in example.get("answer", {}).items():
            if media in content:
                content[media]["example"] = value


# How refusals are documented, for every route of the API.

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
    field, _, fault = detail.partition(": ")
    example = {
        "type": "about:blank",
        "title": status.phrase,
        "status": int(status),
        "detail": detail,
        "instance": path,
        "suggestions": [_SUGGESTED] if status is HTTPStatus.NOT_FOUND else [],
        "errors": [{"field": field, "detail": fault}] if fault else [],
        "request_id": "5e5b1c1f0d8b4b0f9a5c3f4d2e6a7b88",
    }
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}
    response: dict[str, Any] = {"description": description or usual, "content": {PROBLEM_MEDIA: problem}}
    if status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}:
        response["headers"] = {"Retry-After": {"description": "Seconds", "schema": {"type": "integer", "minimum": 1}}}
    return response


REFUSALS: dict[int | str, dict[str, Any]] = {
    int(status): refusal(status)
    for status in (HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE)
}
