"""The JSON Schemas of `issue.toml` and `builds.toml`, for editors and for tools of others.

They say what a single file's keys may hold; what joins several keys, or the document with its script, only
`knowngood check` knows. The published copies stand beside the issues: `python -m app.catalogue.schema` writes them.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from app.catalogue.document import BuildsFile, IssueFile
from app.catalogue.read import shipped_catalogue

DRAFT = "https://json-schema.org/draft/2020-12/schema"


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


def issue_schema() -> dict[str, Any]:
    """The schema of `issue.toml`."""
    return _schema(IssueFile, "An issue of the Known Good catalogue (issue.toml)")


def builds_schema() -> dict[str, Any]:
    """The schema of `builds.toml`."""
    return _schema(BuildsFile, "The builds of the Known Good catalogue (builds.toml)")


def _schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    return {"$schema": DRAFT, **model.model_json_schema(schema_generator=_Plain), "title": title}


def published() -> Mapping[str, str]:
    """The files of the schemas by name, with their text."""
    schemas = {"issue.schema.json": issue_schema(), "builds.schema.json": builds_schema()}
    return {name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in schemas.items()}


def write_schemas(folder: Path) -> tuple[Path, ...]:
    """Write the published files into `folder`."""
    for name, text in published().items():
        (folder / name).write_text(text, encoding="utf-8")
    return tuple(folder / name for name in published())


if __name__ == "__main__":
    for written in write_schemas(Path(sys.argv[1]) if len(sys.argv) > 1 else shipped_catalogue()):
        sys.stdout.write(f"wrote {written}\n")
