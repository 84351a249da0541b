"""KCIDB reports against the schema of KernelCI's own package, and the mapping of verdicts to their words."""

import json
from typing import Any

import pytest
from kcidb_io import schema

from knowngood.app.domain.verdicts.outcome import Outcome
from knowngood.app.domain.verdicts.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from knowngood.app.features.exports import kcidb
from knowngood.app.features.exports.extract import Extract
from knowngood.app.features.exports.kcidb import Status, kcidb_document, status_of
from tests.features.exports.given import (
    NIGHTLY,
    V25,
    V27,
    V27_CPU,
    V27_OTHER_TRITON,
    V27_PY312,
    cell,
    every_verdict,
    extract,
    hostile,
    inferred,
)


def report(given: Extract) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(kcidb_document(given))
    return found


@pytest.mark.parametrize("given", [every_verdict(), hostile(), extract()], ids=["every verdict", "hostile", "empty"])
def test_a_report_is_valid_by_the_package_of_kernelci(given: Extract) -> None:
    told = report(given)
    assert schema.V5_3.is_valid(told)
    assert told == schema.V5_3.validate(told)


def test_the_schema_would_have_refused_another_word() -> None:
    told = report(every_verdict())
    told["tests"][0]["status"] = "fail"
    assert not schema.V5_3.is_valid(told)


def test_everything_that_is_referred_to_is_there_and_ids_are_unique() -> None:
    told = report(every_verdict())
    ids = {kind: [one["id"] for one in told[kind]] for kind in ("checkouts", "builds", "tests", "issues", "incidents")}
    for found in ids.values():
        assert len(set(found)) == len(found) > 0
    assert {one["checkout_id"] for one in told["builds"]} == set(ids["checkouts"])
    assert {one["build_id"] for one in told["tests"]} == set(ids["builds"])
    assert {one["test_id"] for one in told["incidents"]} <= set(ids["tests"])
    assert {one["issue_id"] for one in told["incidents"]} <= set(ids["issues"])
    assert {one["issue_version"] for one in told["incidents"]} == {one["version"] for one in told["issues"]}


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (cell(Verdict.AFFECTED), Status.FAIL),
        (cell(Verdict.FLAKY), Status.FAIL),
        (cell(Verdict.DIFFERENT_FAILURE), Status.FAIL),
        (cell(Verdict.NOT_AFFECTED), Status.PASS),
        (cell(Verdict.NOT_APPLICABLE), Status.SKIP),
        (cell(Verdict.NO_BUILD), Status.SKIP),
        (cell(Verdict.NOT_RUN), None),
        (cell(Verdict.INCONCLUSIVE, attempts={"env_error": 2}), Status.MISS),
        (cell(Verdict.INCONCLUSIVE, control=Outcome.ENV_ERROR), Status.MISS),
        (cell(Verdict.INCONCLUSIVE, attempts={"cancelled": 1, "env_error": 1}), Status.MISS),
        (cell(Verdict.INCONCLUSIVE, attempts={"timeout": 1}), Status.ERROR),
        (cell(Verdict.INCONCLUSIVE, attempts={"harness_error": 1}), Status.ERROR),
        (cell(Verdict.INCONCLUSIVE, attempts={"pass": 1, "other_failure": 1}), Status.ERROR),
        (cell(Verdict.INCONCLUSIVE, attempts={"match": 1}, control=Outcome.OTHER_FAILURE), Status.ERROR),
        (cell(Verdict.INCONCLUSIVE, attempts={"env_error": 1}, control=Outcome.CRASH), Status.ERROR),
    ],
    ids=lambda value: f"{value.verdict} {dict(value.attempts)}" if isinstance(value, Cell) else str(value),
)
def test_a_verdict_has_one_status(found: Cell, status: Status | None) -> None:
    assert status_of(found) is status


def test_every_status_of_kcidb_has_its_use_and_the_table_in_the_module_names_them() -> None:
    used = {one["status"] for one in report(every_verdict())["tests"]} | {
        status_of(cell(Verdict.INCONCLUSIVE, attempts={"timeout": 1}))
    }
    assert used == set(Status)
    documented = kcidb.__doc__ or ""
    assert all(verdict in documented for verdict in Verdict)
    assert all(status in documented for status in Status)


def test_a_known_issue_is_an_incident_an_absent_one_too_and_another_failure_is_none() -> None:
    told = report(every_verdict())
    present = {one["id"].split("/")[1]: one["present"] for one in told["incidents"] if "toy-1" in one["issue_id"]}
    assert present[V25.id] is True
    assert present["torch-2.6.0+cu124"] is False
    assert present[V27.id] is True  # flaky
    assert len([one for one in told["incidents"] if "toy-1" in one["issue_id"]]) == 4  # the GPU's cell is the fourth


def test_a_cell_that_nobody_measured_is_no_scheduled_test() -> None:
    told = report(extract(cell(Verdict.NOT_RUN)))
    assert {name: told[name] for name in ("builds", "tests", "issues", "incidents")} == {
        "builds": [],
        "tests": [],
        "issues": [],
        "incidents": [],
    }


@pytest.mark.parametrize("verdict", [Verdict.AFFECTED, Verdict.NOT_AFFECTED])
def test_an_inferred_cell_is_no_test_that_was_run(verdict: Verdict) -> None:
    told = report(extract(cell(verdict), inferred(verdict), builds=(V27, V27_PY312)))
    assert [one["id"] for one in told["builds"]] == [f"knowngood:{V27.id}"]
    assert {one["build_id"] for one in told["tests"]} == {f"knowngood:{V27.id}"}
    assert len(told["incidents"]) == 1


def test_a_workaround_that_helps_in_part_has_failed_and_says_with_what() -> None:
    found = {"half": WorkaroundFinding(WorkaroundVerdict.PARTIAL, "helps with small; fails with big")}
    told = report(extract(cell(Verdict.AFFECTED, workarounds=found)))["tests"][1]
    assert (told["status"], told["comment"]) == ("FAIL", "helps with small; fails with big")
    assert told["misc"]["verdict"] == "partial"


def test_variants_of_one_release_come_from_one_checkout_and_a_nightly_from_its_revision() -> None:
    told = report(every_verdict())
    checkouts = {one["id"]: one for one in told["checkouts"]}
    from_27 = {one["id"] for one in told["builds"] if one["checkout_id"] == "knowngood:torch-2.7.0"}
    assert from_27 >= {f"knowngood:{build.id}" for build in (V27, V27_CPU, V27_OTHER_TRITON)}
    assert checkouts["knowngood:torch-2.7.0"]["git_commit_name"] == "v2.7.0"
    (nightly,) = report(extract(cell(Verdict.AFFECTED, NIGHTLY), builds=(NIGHTLY,)))["checkouts"]
    assert nightly["git_commit_hash"] == "a" * 40
    assert "git_commit_name" not in nightly


def test_workarounds_are_tests_of_their_own() -> None:
    tests = {one["path"]: one["status"] for one in report(every_verdict())["tests"] if V25.id in one["id"]}
    assert tests == {
        "knowngood.toy-1": "FAIL",
        "knowngood.toy-1.good": "PASS",
        "knowngood.toy-1.bad": "FAIL",
        "knowngood.toy-1.needless": "DONE",
    }


def test_culprits_are_put_in_the_words_of_kcidb_and_a_usage_blames_nobody() -> None:
    issues = {one["id"]: one for one in report(every_verdict())["issues"]}
    assert issues["knowngood:toy-1"]["culprit"] == {"code": True, "tool": False, "harness": False}
    assert issues["knowngood:fla-2"]["culprit"] == {"code": False, "tool": True, "harness": False}
    given = every_verdict()
    usage = given.issues[2]
    (told,) = report(extract(cell(Verdict.AFFECTED, issue=usage.id), issues=(usage,)))["issues"]
    assert "culprit" not in told
    assert told["categories"] == ["Docs_all"]


def test_a_later_report_has_a_higher_version_of_its_issues() -> None:
    given = every_verdict()
    assert report(given)["issues"][0]["version"] == int(given.now.timestamp())
