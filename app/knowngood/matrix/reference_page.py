"""`/signs`: what the signs of the matrix mean.

`/api/docs`: the API reference, made from the same document that `/openapi.json` serves. No script, no other host.
"""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Response

from knowngood.web.html.status_labels import LEGEND
from knowngood.web.request_context import Context

router = APIRouter(include_in_schema=False)


@router.get("/signs")
def signs(context: Context) -> Response:
    return context.page("signs.html", LEGEND)


@router.get("/api/docs")
def reference(context: Context) -> Response:
    """The template reads the document by itself, with two functions: a type by name, and any in words."""
    return context.page(
        "reference.html", {"document": context.request.app.openapi(), "name_of": name_of, "kind_of": kind_of}
    )


def name_of(schema: Mapping[str, Any]) -> str:
    """`CellBody` of a reference to it, or to it and its shorter forms; empty for a type without a name."""
    first = schema.get("anyOf", [schema])[0]
    return str(schema.get("$ref", first.get("$ref", ""))).rpartition("/")[2]


def kind_of(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """A type in a few words: `string`, `list of CellBody`, `pass | match`. Names in `schemas` are spelt out."""
    name = name_of(schema) if "anyOf" not in schema else ""
    if name:
        return kind_of(schemas[name], {}) if name in schemas else name
    if "anyOf" in schema:
        return " or ".join(kind_of(option, schemas) for option in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {kind_of(schema.get('items', {}), schemas)}"
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    return str(schema.get("type", "any"))
