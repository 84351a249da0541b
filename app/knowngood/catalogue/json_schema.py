"""The JSON Schemas of `issue.toml` and `builds.toml`, for editors and for tools of others.

They say what a single file's keys may hold; what joins several keys, or the document with its script, only
`knowngood check` knows. The published copies stand beside the issues: `python -m
knowngood.catalogue.json_schema` writes them.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from knowngood.catalogue.loader import shipped_catalogue
from knowngood.catalogue.models import BuildsFile, IssueFile
from knowngood.serialization.toml_models import schema_of, schema_text

ISSUE_SCHEMA = "issue.schema.json"


def issue_schema() -> dict[str, Any]:
    """The schema of `issue.toml`."""
    return schema_of(IssueFile, "An issue of the Known Good catalogue (issue.toml)")


def builds_schema() -> dict[str, Any]:
    """The schema of `builds.toml`."""
    return schema_of(BuildsFile, "The builds of the Known Good catalogue (builds.toml)")


def published() -> Mapping[str, str]:
    """The files of the schemas by name, with their text."""
    schemas = {ISSUE_SCHEMA: issue_schema(), "builds.schema.json": builds_schema()}
    return {name: schema_text(schema) for name, schema in schemas.items()}


def write_schemas(folder: Path) -> tuple[Path, ...]:
    """Write the published files into `folder`."""
    for name, text in published().items():
        (folder / name).write_text(text, encoding="utf-8")
    return tuple(folder / name for name in published())


if __name__ == "__main__":
    for written in write_schemas(Path(sys.argv[1]) if len(sys.argv) > 1 else shipped_catalogue()):
        sys.stdout.write(f"wrote {written}\n")
