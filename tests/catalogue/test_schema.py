"""The published schemas: what the code makes, and what the files of the catalogue satisfy."""

import json
import tomllib
from datetime import date
from pathlib import Path

import jsonschema
import pytest

from knowngood.catalogue.json_schema import builds_schema, issue_schema, published, write_schemas
from knowngood.catalogue.loader import shipped_catalogue
from tests.catalogue.given import Example


def _as_json(text: str) -> object:
    return json.loads(json.dumps(tomllib.loads(text), default=date.isoformat))


@pytest.mark.parametrize("name", ["issue.schema.json", "builds.schema.json"])
def test_the_published_file_is_what_the_code_makes(name: str) -> None:
    found = (shipped_catalogue() / name).read_text(encoding="utf-8")

    assert found == published()[name], "run: python -m knowngood.catalogue.json_schema"


def test_the_schemas_are_schemas() -> None:
    for schema in (issue_schema(), builds_schema()):
        jsonschema.Draft202012Validator.check_schema(schema)


def test_every_key_is_described() -> None:
    """An editor shows the description; where the name says it all there is none, and these are those."""
    schema = issue_schema()
    tables = {"": schema, **schema["$defs"]}
    bare = {
        key
        for table in tables.values()
        for key, value in table.get("properties", {}).items()
        if "description" not in value
    }
    assert bare == {
        "claim",
        "id",
        "link",
        "packages",
        "requires",
        "severity",
        "signature",
        "title",
        "title_zh",
        "summary_zh",
        "body_zh",
        "trade_off_zh",
        "what_zh",
        "url",
        "variant",
        "workaround",
    }


def test_the_example_satisfies_the_schema(example: Example) -> None:
    jsonschema.validate(_as_json(example.document), issue_schema())


def test_a_release_of_packages_is_known_to_the_schema(example: Example) -> None:
    text = example.document.replace("[requires]", '[packages."2.7"]\nrequires = ["einops==0.8.0"]\n\n[requires]')
    jsonschema.validate(_as_json(text), issue_schema())

    with pytest.raises(jsonschema.ValidationError, match="'two' does not match"):
        jsonschema.validate(_as_json(text.replace('"2.7"', "two")), issue_schema())


def test_a_misspelt_key_is_refused_by_the_schema(example: Example) -> None:
    with pytest.raises(jsonschema.ValidationError, match="severty"):
        jsonschema.validate(_as_json(example.document.replace("severity", "severty")), issue_schema())


def test_the_schemas_can_be_written_anew(tmp_path: Path) -> None:
    assert [file.name for file in write_schemas(tmp_path)] == ["issue.schema.json", "builds.schema.json"]
    assert (tmp_path / "issue.schema.json").read_text(encoding="utf-8") == published()["issue.schema.json"]
