"""Documents that people write by hand (TOML): strict models, refusals in words, and the JSON Schemas of both.

What a document may hold stands with its reader; here is what all of them share.
"""

import json
from collections.abc import Collection, Mapping
from datetime import date
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import ErrorDetails, core_schema

from knowngood.serialization.toml_positions import KeyPath

Finding = tuple[KeyPath, str]
"""The key that something is wrong with, and what."""

_PRINTABLE_INT = 1 << 64
_SHOWN_CHARACTERS = 60
_MOST_FINDINGS = 100  # a file of nothing but unknown keys has as many of them as lines
_OF_THE_KEY = "[key]"  # pydantic's last word where not a value is refused but its key
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


STRICT = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)
"""For tables that refuse what they do not know. A field's docstring is its description in the JSON Schema."""


Document = TypeVar("Document", bound=BaseModel)


def read_document(
    model: type[Document], data: Mapping[str, Any], unwritten: Collection[str] = ()
) -> tuple[Document | None, list[Finding]]:
    """Check `data` against `model`: the value, or what is wrong with each key (up to a hundred).

    `unwritten` are fields that no file has: they are gathered from what it has, and are not named to people.
    """
    try:
        return model.model_validate(data), []
    except ValidationError as refusal:
        errors = refusal.errors(include_url=False)[:_MOST_FINDINGS]
        return None, [_in_words(model, error, unwritten) for error in errors]


def _in_words(model: type[BaseModel], error: ErrorDetails, unwritten: Collection[str]) -> Finding:
    path: KeyPath = tuple(part for part in error["loc"] if part not in {*unwritten, _OF_THE_KEY})
    key = _shown_key(next((part for part in reversed(path) if isinstance(part, str)), ""))
    context = error.get("ctx", {})
    match error["type"]:
        case "missing":
            words = f'"{key}" is missing'
        case "extra_forbidden":
            words = _unknown_key(key, sorted(_model_at(model, error["loc"][:-1]).model_fields.keys() - set(unwritten)))
        case "enum" | "literal_error":
            words = f'"{key}" is {_shown(error["input"])}; write {context["expected"]}'
        case "too_short":
            words = f'"{key}" is empty; name at least one'
        case "value_error":
            words = f'"{key}": {context["error"]}'
        case "list_type":
            of_tables = _table_in(_annotation_at(model, error["loc"])) is not None
            words = f'"{key}" must be a list' + (f" (of tables: [[{key}]])" if of_tables else "")
        case "model_type" | "dict_type":
            words = f'"{key}" must be a table'
        case _:
            words = f'"{key}" is {_shown(error["input"])}; {error["msg"][:1].lower()}{error["msg"][1:]}'
    return path, words


def _shown_key(key: str) -> str:
    """A key as it may stand in a sentence: TOML's quoted keys can be any text."""
    return key if key.isprintable() and len(key) <= _SHOWN_CHARACTERS else f"{key!r:.{_SHOWN_CHARACTERS}}"


def _shown(value: object) -> str:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int):  # TOML's hexadecimal integers can be longer than Python prints
        return str(value) if abs(value) < _PRINTABLE_INT else "a very large number"
    return f"{value!r:.{_SHOWN_CHARACTERS}}"


def _unknown_key(key: str, known: list[str]) -> str:
    near = get_close_matches(key, known, 1)
    return f'unknown key "{key}"; ' + (f'did you mean "{near[0]}"?' if near else f"known here: {', '.join(known)}")


def _model_at(model: type[BaseModel], path: KeyPath) -> type[BaseModel]:
    """The model of the table that stands at `path`, or of the nearest one around it."""
    for part in path:
        if isinstance(part, str) and part in model.model_fields:
            model = _table_in(model.model_fields[part].annotation) or model
    return model


def _annotation_at(model: type[BaseModel], path: KeyPath) -> object:
    field = _model_at(model, path[:-1]).model_fields.get(str(path[-1]))
    return field.annotation if field else None


def _table_in(annotation: object) -> type[BaseModel] | None:
    """The model inside `list[Model]`, `dict[str, Model]` or `Model`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for inner in get_args(annotation) if (model := _table_in(inner))), None)


class _Plain(GenerateJsonSchema):
    """No titles made of names, and no null: TOML has none, a key is left out."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - the signature is pydantic's
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        made = super().default_schema(schema)
        if made.get("default", "") is None:
            del made["default"]
        return made


def schema_of(model: type[BaseModel], title: str) -> dict[str, Any]:
    return {"$schema": _DRAFT, **model.model_json_schema(schema_generator=_Plain), "title": title}


def schema_text(schema: Mapping[str, Any]) -> str:
    """A schema as the text of its published file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
