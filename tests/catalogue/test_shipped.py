"""The catalogue that is shipped, folder by folder: a new issue brings its own tests."""

import ast
import json
import tomllib
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from knowngood.catalogue.json_schema import builds_schema, issue_schema
from knowngood.catalogue.loader import read_builds, shipped_catalogue
from knowngood.domain.issue import BASELINE, CONTROL, Device, Issue, environment_request, inapplicable, variants_of
from knowngood.domain.verdicts.outcome import Ending, Outcome, Raised
from knowngood.domain.verdicts.verdict import Verdict, derive_cell, judge
from tests.catalogue.given import shipped
from tests.make import HARDWARE, make_attempt, make_record

FOLDERS = sorted(file.parent for file in shipped_catalogue().glob("*/issue.toml"))


@cache
def _issues() -> Mapping[str, Issue]:
    return {issue.id: issue for issue in shipped().issues}


def shipped_issue(folder: Path) -> Issue:
    return _issues()[folder.name]


@cache
def _validator() -> jsonschema.protocols.Validator:
    """Of the schema of an issue, which is found sound once."""
    schema = issue_schema()
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


def _as_json(file: Path) -> Any:
    return json.loads(json.dumps(tomllib.loads(file.read_text(encoding="utf-8")), default=date.isoformat))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_issue_is_sound(folder: Path) -> None:
    issue = shipped_issue(folder)

    assert issue.id == folder.name
    _validator().validate(_as_json(folder / "issue.toml"))


def test_every_repro_is_python_3_9() -> None:
    for folder in FOLDERS:
        ast.parse(shipped_issue(folder).script, folder / "repro.py", feature_version=(3, 9))


def test_the_builds_are_sound() -> None:
    file = shipped_catalogue() / "builds.toml"

    assert read_builds(file)
    jsonschema.validate(_as_json(file), builds_schema())


def test_the_catalogue_is_sound_as_a_whole() -> None:
    catalogue = shipped()

    assert len(catalogue.issues) == len(FOLDERS) > 0


BUILDS = read_builds(shipped_catalogue() / "builds.toml")
_MISSING = Raised(
    "builtins.ModuleNotFoundError", "No module named 'einops'", "ModuleNotFoundError: No module named 'einops'"
)
GUTTED: dict[str, dict[str, Any]] = {
    "emptied: its arms return nothing": {"ending": Ending.RETURNED, "probes": {"eager": 9}},
    "emptied: its arms tell something and do nothing": {"ending": Ending.RETURNED, "observed": {"equal": "True"}},
    "it exits with 0": {"ending": Ending.EXITED, "exit_code": 0},
    "it exits with 0 after it told something": {"ending": Ending.EXITED, "exit_code": 0, "observed": {"equal": "True"}},
    "a module is missing": {"ending": Ending.RAISED, "exit_code": 1, "raised": _MISSING},
}


@pytest.mark.parametrize("gutted", GUTTED.values(), ids=GUTTED)
def test_a_gutted_repro_says_nothing_good_and_nothing_bad(gutted: dict[str, Any]) -> None:
    """Whatever is done to a row's script, no cell of it turns green or red by it; the control is let pass."""
    told = {folder.name: _verdict_where_gutted(shipped_issue(folder), gutted) for folder in FOLDERS}
    neither = {Verdict.INCONCLUSIVE, Verdict.DIFFERENT_FAILURE, Verdict.NOT_RUN}  # the last where no run says anything
    assert {name: verdict for name, verdict in told.items() if verdict not in neither} == {}


def _verdict_where_gutted(issue: Issue, gutted: dict[str, Any]) -> Verdict:
    hardware = "cuda-sm_90" if issue.requires.device is Device.CUDA else HARDWARE
    build = next(build for build in reversed(BUILDS) if inapplicable(issue, build, hardware) is None)
    imported = {**make_record(build=build).imported, **environment_request(issue, build).pins}
    whole = {"observed": {"equal": "True"}, "probes": dict.fromkeys(issue.arm(CONTROL).exercises, 3)}
    records = {
        CONTROL: make_record(Outcome.PASS, build, imported=imported, **whole),
        BASELINE: make_record(Outcome.PASS, build, imported=imported, **{"observed": {}, "probes": {}, **gutted}),
    }
    judged = [
        judge(make_attempt(issue=issue, build=build, arm=arm, variant=variant.id, record=record), issue, build, log="")
        for arm, record in records.items()
        for variant in variants_of(issue, arm)
    ]
    assert {one.outcome for one in judged if one.arm == CONTROL} == {Outcome.PASS}, issue.id
    return derive_cell(issue, build, hardware, judged).verdict


# What a workaround replaces altogether need not be read by it; each is here for a reason.
INDIFFERENT = {
    ("pytorch-133762", "disabled_sum"): "it breaks the graph, so that there is no full one with it",
    ("pytorch-138354", "name_the_backends"): "the backends that it names stand in place of the one asked for",
    ("pytorch-151290", "one_thread"): "one thread stands in place of as many as there would be",
    ("pytorch-151523", "one_thread"): "one thread stands in place of as many as there would be",
    ("pytorch-152262", "pop"): "it uses no iterator, of whichever kind",
    ("pytorch-165892", "aot_eager"): "the modes are Inductor's",
    ("pytorch-174074", "out_of_place"): "it always takes the index as a tensor",
    ("pytorch-175855", "index"): "it iterates over nothing, so that there is no kind of loop",
    ("pytorch-175855", "queue"): "it iterates over nothing, so that there is no kind of loop",
    ("pytorch-196678", "cudnn_off"): "the release chooses among what is left",
    ("pytorch-198068", "static_shapes"): "its shapes are always static",
    ("pytorch-197811", "functions"): "functions of torch stand in place of whichever methods were captured",
}


def test_every_workaround_takes_up_what_its_variants_set() -> None:
    """One that does not would pass by computing something else, and be called a cure of what it never ran."""
    assert {key for folder in FOLDERS for key in _indifferent(shipped_issue(folder))} == set(INDIFFERENT)


def _indifferent(issue: Issue) -> set[tuple[str, str]]:
    functions = {node.name: node for node in ast.parse(issue.script).body if isinstance(node, ast.FunctionDef)}
    return {
        (issue.id, one.id)
        for one in issue.workarounds
        for variant in variants_of(issue, one.id)
        if _ignored(functions[one.id], variant.params)
    }


def _ignored(function: ast.FunctionDef, params: Mapping[str, Any]) -> set[str]:
    """The parameters with other values than their defaults that the function's body never reads."""
    names = (argument.arg for argument in function.args.args)
    defaults = dict(zip(names, map(ast.literal_eval, function.args.defaults), strict=True))
    inner = (node for statement in function.body for node in ast.walk(statement))
    read = {node.id for node in inner if isinstance(node, ast.Name)}
    return {name for name, value in params.items() if value != defaults[name]} - read


def test_up_measures_a_few_issues_anew() -> None:
    default = [issue for issue in shipped().issues if issue.default]
    assert 0 < len(default) <= 8
