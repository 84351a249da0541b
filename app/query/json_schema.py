"""The JSON Schema of queries as JSON. `python -m knowngood.app.query.json_schema` writes it (query.schema.json)."""

import sys
from pathlib import Path
from typing import Any

from knowngood.app.query.fields import ALIASES, FIELDS, LONGEST_VALUE, Kind
from knowngood.app.query.parser import Quantifier
from knowngood.app.serialization.toml_models import schema_text

PUBLISHED = Path(__file__).with_name("query.schema.json")


def query_schema() -> dict[str, Any]:
    """The JSON Schema of a query. What versions and numbers may be, it says in words only."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A query of the Known Good matrix",
        "anyOf": [{"type": "object", "maxProperties": 0}, {"$ref": "#/$defs/nothing"}, {"$ref": "#/$defs/query"}],
        "$defs": {
            "nothing": _object("and", {"type": "array", "maxItems": 0}),
            "query": {
                "oneOf": [
                    {"$ref": f"#/$defs/{name}"}
                    for name in ("joined", "condition", *(f"of_{one.value}" for one in Kind))
                ]
            },
            "joined": {
                "oneOf": [
                    _object("and", _list_of("query")),
                    _object("or", _list_of("query")),
                    _object("not", {"$ref": "#/$defs/query"}),
                ]
            },
            "condition": {"oneOf": [_object("text", {"type": "string", "pattern": "\\S"}), *_quantifiers()]},
            "term": {
                "oneOf": [
                    {"$ref": "#/$defs/of_place"},
                    {"$ref": "#/$defs/of_cell"},
                    _object("not", {"oneOf": [{"$ref": "#/$defs/of_place"}, {"$ref": "#/$defs/of_cell"}]}),
                ]
            },
            **{f"of_{kind.value}": {"oneOf": _fields(kind)} for kind in Kind},
        },
    }


def _quantifiers() -> list[dict[str, Any]]:
    claim = {"$ref": "#/$defs/of_cell"}
    where = {"type": "array", "items": {"$ref": "#/$defs/term"}}
    number = {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0, "maximum": 999_999}]}
    step = _one_or_more(_value_schema("status"))
    return [
        *(_object(one.value, _record({"where": where, "claim": claim}, "claim")) for one in Quantifier),
        _object("count", _record({"where": where, "is": number}, "is")),
        _object("seq", {"type": "array", "minItems": 2, "maxItems": 10, "items": step}),
    ]


def _fields(kind: Kind) -> list[dict[str, Any]]:
    named = {**{name: name for name in FIELDS}, **ALIASES}
    return [
        {**_object(name, _one_or_more(_value_schema(real))), "description": FIELDS[real].about}
        for name, real in named.items()
        if FIELDS[real].kind is kind
    ]


def _value_schema(name: str) -> dict[str, Any]:
    field = FIELDS[name]
    if field.words and name != "severity":
        return {"enum": list(field.words)}
    return {"type": "string", "minLength": 1, "maxLength": LONGEST_VALUE}


def _one_or_more(value: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [value, {"type": "array", "minItems": 1, "items": value}]}


def _list_of(name: str) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": {"$ref": f"#/$defs/{name}"}}


def _object(name: str, value: dict[str, Any]) -> dict[str, Any]:
    return _record({name: value}, name)


def _record(properties: dict[str, Any], required: str) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": [required], "properties": properties}


def write_schema(file: Path = PUBLISHED) -> Path:
    file.write_text(schema_text(query_schema()), encoding="utf-8")
    return file


if __name__ == "__main__":
    sys.stdout.write(f"wrote {write_schema().name}\n")
