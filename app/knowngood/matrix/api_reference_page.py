"""`/api/docs`: the API reference, made from the same document that `/openapi.json` serves. No script, no other host."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Response

from knowngood.web.request_context import Context, RequestContext

router = APIRouter(include_in_schema=False)

_NO_DEFAULT = ""


@dataclass(frozen=True)
class Parameter:
    name: str
    where: str
    kind: str
    default: str
    description: str


@dataclass(frozen=True)
class Field:
    name: str
    kind: str


@dataclass(frozen=True)
class Operation:
    """One door: how to ask, and the fields of the answer."""

    path: str
    anchor: str
    description: str
    parameters: tuple[Parameter, ...]
    answer: str
    fields: tuple[Field, ...]
    command: str


@dataclass(frozen=True)
class ReferencePage:
    title: str
    description: str
    operations: tuple[Operation, ...]
    json_address: str


@router.get("/api/docs")
def reference(context: Context) -> Response:
    return context.page("reference.html", reference_page(context, context.request.app.openapi()))


def reference_page(context: RequestContext, document: Mapping[str, Any]) -> ReferencePage:
    schemas = document.get("components", {}).get("schemas", {})
    operations = tuple(
        _operation(context, path, methods["get"], schemas)
        for path, methods in document["paths"].items()
        if "get" in methods
    )
    return ReferencePage(document["info"]["title"], document["info"]["description"], operations, "/openapi.json")


def _operation(context: RequestContext, path: str, told: Mapping[str, Any], schemas: Mapping[str, Any]) -> Operation:
    contents = told["responses"]["200"].get("content", {})
    name = next((_name(content.get("schema", {})) for content in contents.values()), "")
    return Operation(
        path=path,
        anchor=path.strip("/").replace("/", "-").replace("{", "").replace("}", ""),
        description=told.get("description", ""),
        parameters=tuple(_parameter(one, schemas) for one in told.get("parameters", ())),
        answer=name or ", ".join(contents),
        fields=tuple(
            Field(key, _kind(value, {})) for key, value in schemas.get(name, {}).get("properties", {}).items()
        ),
        command=f"curl {context.base}{path}",
    )


def _parameter(told: Mapping[str, Any], schemas: Mapping[str, Any]) -> Parameter:
    schema = told.get("schema", {})
    default = schema.get("default", _NO_DEFAULT)
    return Parameter(
        name=told["name"],
        where=told["in"],
        kind=_kind(schema, schemas),
        default="" if default in (_NO_DEFAULT, None, []) else str(default),
        description=told.get("description", ""),
    )


def _name(schema: Mapping[str, Any]) -> str:
    """`CellBody` of a reference to it, or to it and its shorter forms; empty for a type without a name."""
    first = schema.get("anyOf", [schema])[0]
    return str(schema.get("$ref", first.get("$ref", ""))).rpartition("/")[2]


def _kind(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """A type in a few words: `string`, `list of CellBody`, `pass | match`. Names in `schemas` are spelt out."""
    name = _name(schema) if "anyOf" not in schema else ""
    if name:
        return _kind(schemas[name], {}) if name in schemas else name
    if "anyOf" in schema:
        return " or ".join(_kind(one, schemas) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}), schemas)}"
    if "enum" in schema:
        return " | ".join(str(one) for one in schema["enum"])
    return str(schema.get("type", "any"))
