"""The catalogue that is shipped, folder by folder: a new issue brings its own tests."""

import ast
import json
import tomllib
from datetime import date
from pathlib import Path

import jsonschema
import pytest

from app.catalogue.issues import read_issue
from app.catalogue.read import read_builds, read_catalogue, shipped_catalogue
from app.catalogue.schema import builds_schema, issue_schema

FOLDERS = sorted(file.parent for file in shipped_catalogue().glob("*/issue.toml"))


def _as_json(file: Path) -> object:
    return json.loads(json.dumps(tomllib.loads(file.read_text(encoding="utf-8")), default=date.isoformat))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_issue_is_sound(folder: Path) -> None:
    issue = read_issue(folder)

    assert issue.id == folder.name
    jsonschema.validate(_as_json(folder / "issue.toml"), issue_schema())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_repro_is_python_3_9(folder: Path) -> None:
    ast.parse((folder / "repro.py").read_text(encoding="utf-8"), feature_version=(3, 9))


def test_the_builds_are_sound() -> None:
    file = shipped_catalogue() / "builds.toml"

    assert read_builds(file)
    jsonschema.validate(_as_json(file), builds_schema())


def test_the_catalogue_is_sound_as_a_whole() -> None:
    catalogue = read_catalogue([shipped_catalogue()])

    assert len(catalogue.issues) == len(FOLDERS) > 0
