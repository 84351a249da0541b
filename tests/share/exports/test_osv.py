"""OSV records against OSV's own schema, and what they may and may not say."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from packaging.version import Version

from knowngood.domain.issue import Claim
from knowngood.domain.verdicts.verdict import EXCESSES, Verdict
from knowngood.share.exports.extract import Extract
from knowngood.share.exports.osv import osv_document, osv_records
from tests.make import make_issue
from tests.share.exports.given import (
    GPU_CLASS,
    LINE,
    NIGHTLY,
    V25,
    V26,
    V27,
    V27_CPU,
    V27_OTHER_TRITON,
    V27_PY312,
    V28,
    cell,
    every_verdict,
    extract,
    hostile,
    inferred,
)

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "osv-1.6.7.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker())


def records(given: Extract) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(osv_document(given))["vulns"]
    assert found == json.loads(json.dumps(list(osv_records(given))))
    return found


def affected(given: Extract) -> dict[str, Any]:
    (record,) = records(given)
    (only,) = record["affected"]
    found: dict[str, Any] = only
    return found


@pytest.mark.parametrize("given", [every_verdict(), hostile()], ids=["every verdict", "hostile texts"])
def test_the_one_deviation_from_the_schema_is_the_prefix_of_the_id(given: Extract) -> None:
    for record in records(given):
        (error,) = VALIDATOR.iter_errors(record)
        assert (list(error.path), error.validator) == (["id"], "pattern")
        assert error.schema_path[0] == "properties"
        assert "not registered" in record["database_specific"]["rules"]["id"]
        assert list(VALIDATOR.iter_errors({**record, "id": "OSV-2026-1"})) == []


def test_what_is_inferred_accuses_no_version_and_is_not_listed_as_measured() -> None:
    assert records(extract(inferred(Verdict.AFFECTED), builds=(V27_PY312,))) == []
    beside = extract(cell(Verdict.AFFECTED, V26), inferred(Verdict.AFFECTED), builds=(V26, V27, V27_PY312))
    (record,) = records(beside)
    assert record["affected"][0]["versions"] == ["2.6.0", "2.6.0+cu124"]
    assert [one["build"] for one in record["database_specific"]["measured"]] == [V26.id]


def test_an_issue_that_nobody_measured_has_no_record() -> None:
    assert [record["id"] for record in records(every_verdict())] == ["KNOWNGOOD-toy-1", "KNOWNGOOD-fla-2"]


def test_versions_are_exactly_those_that_fail_as_imported_and_as_published() -> None:
    first, second = records(every_verdict())[0]["affected"]
    assert first["ecosystem_specific"]["hardware"] == "cpu-x86_64"
    assert first["versions"] == ["2.5.0", "2.5.0+cu124", "2.7.0", "2.7.0+cu124"]  # affected and flaky; nothing else
    assert (second["ecosystem_specific"]["hardware"], second["versions"]) == (GPU_CLASS, ["2.8.0", "2.8.0+cu124"])


def test_a_wheel_of_another_index_is_not_called_by_its_bare_version() -> None:
    told = affected(extract(cell(Verdict.AFFECTED, V27_CPU), builds=(V27, V27_CPU)))
    assert told["versions"] == ["2.7.0+cpu"]


def test_a_foreign_triton_accuses_no_version() -> None:
    (record,) = records(extract(cell(Verdict.AFFECTED, V27_OTHER_TRITON), builds=(V27, V27_OTHER_TRITON)))
    assert record["affected"] == []
    assert record["database_specific"]["measured"][0]["build"] == V27_OTHER_TRITON.id


def test_a_range_ends_at_a_measured_pass_and_holds_the_local_versions_that_people_import() -> None:
    told = affected(
        extract(
            cell(Verdict.NOT_AFFECTED, V25),
            cell(Verdict.AFFECTED, V26),
            cell(Verdict.AFFECTED, V27),
            cell(Verdict.NOT_AFFECTED, V28),
        )
    )
    (range_,) = told["ranges"]
    assert range_["events"] == [{"introduced": "2.6.0"}, {"fixed": "2.8.0"}]
    assert range_["database_specific"]["derived"] is True
    assert told["database_specific"]["intervals"] == [
        {"broke_in": "(2.5.0, 2.6.0]", "fixed_in": "(2.7.0, 2.8.0]", "unanswered": {}}
    ]
    introduced, fixed = Version("2.6.0"), Version("2.8.0")
    assert [build.torch for build in LINE if introduced <= Version(build.torch) < fixed] == [V26.torch, V27.torch]


@pytest.mark.parametrize(
    ("cells", "builds"),
    [
        pytest.param([cell(Verdict.AFFECTED, V27)], LINE, id="nothing ends it"),
        pytest.param([cell(Verdict.AFFECTED, V26), cell(Verdict.NOT_AFFECTED, V28)], LINE, id="2.7 was not measured"),
        pytest.param(
            [cell(Verdict.AFFECTED, V27), cell(Verdict.NOT_AFFECTED, V28), cell(Verdict.NOT_AFFECTED, V27_CPU)],
            (*LINE, V27_CPU),
            id="the CPU wheel of 2.7 passes",
        ),
        pytest.param(
            [cell(Verdict.AFFECTED, V27), cell(Verdict.INCONCLUSIVE, V28)], LINE, id="what ends it cannot say"
        ),
    ],
)
def test_no_range_where_it_would_say_more_than_was_measured(cells: list[Any], builds: tuple[Any, ...]) -> None:
    assert "ranges" not in affected(extract(*cells, builds=builds))


def test_intervals_and_ranges_are_of_all_that_is_known_whatever_was_selected() -> None:
    known = [cell(Verdict.NOT_AFFECTED, V25), cell(Verdict.AFFECTED, V27), cell(Verdict.NOT_AFFECTED, V28)]
    whole = extract(*known)
    told = affected(replace(whole, cells=(known[1],)))
    assert told["database_specific"] == affected(whole)["database_specific"]
    assert told["database_specific"]["history"] == ("broke after 2.5.0, by 2.7.0 (2.6.0 not run), fixed in 2.8.0")
    assert told["database_specific"]["intervals"] == [
        {
            "broke_in": "(2.5.0, 2.7.0]",
            "fixed_in": "(2.7.0, 2.8.0]",
            "unanswered": {"before": {"2.6.0": "not_run"}},
        }
    ]
    assert told["ranges"] == affected(whole)["ranges"]


def test_upstreams_word_stands_beside_an_interval_that_says_otherwise() -> None:
    issue = make_issue(claims=(Claim("It fails on 2.8.", "toy#1", says="affected", about="==2.8.0"),))
    told = affected(extract(cell(Verdict.AFFECTED, V26), cell(Verdict.NOT_AFFECTED, V27), issues=(issue,)))
    assert told["database_specific"]["beside"] == [
        "but upstream says that 2.8.0 is affected (toy#1; not measured here)"
    ]


def test_pythons_that_nobody_measured_take_no_range_away_and_one_that_passes_does() -> None:
    fails, passes = cell(Verdict.AFFECTED, V27), cell(Verdict.NOT_AFFECTED, V28)
    builds = (*LINE, V27_PY312)
    assert "ranges" in affected(extract(fails, passes, builds=builds))
    contradicted = affected(extract(fails, passes, cell(Verdict.NOT_AFFECTED, V27_PY312), builds=builds))
    assert "ranges" not in contradicted
    assert contradicted["versions"] == ["2.7.0", "2.7.0+cu124"]


def test_last_affected_is_never_written_because_local_versions_come_after_it() -> None:
    assert Version("2.7.0+cu124") > Version("2.7.0")
    assert b'"last_affected"' not in osv_document(every_verdict())


def test_every_measured_cell_stands_there_passes_too_with_age_evidence_and_workarounds() -> None:
    measured = records(every_verdict())[0]["database_specific"]["measured"]
    assert {one["verdict"] for one in measured} == set(Verdict) - EXCESSES - {Verdict.NOT_RUN, Verdict.NOT_APPLICABLE}
    first = measured[0]
    assert first["workarounds"] == {
        "good": "effective",
        "bad": "ineffective",
        "needless": "unnecessary",
        "untried": "unverified",
    }
    assert first["evidence"].startswith("https://kg.example/attempts/")
    assert [one["stale"] for one in measured if one["hardware"] == GPU_CLASS] == [True]


def test_links_are_references_and_workarounds_come_with_their_snippet() -> None:
    record = records(every_verdict())[0]
    assert [one["type"] for one in record["references"]] == ["REPORT", "FIX", "EVIDENCE", "EVIDENCE"]
    assert record["references"][-1]["url"] == "https://kg.example/issues/toy-1"
    assert record["database_specific"]["workarounds"][0]["body"] == "```python\nx\n```"


def test_what_fails_only_beside_other_packages_says_so() -> None:
    assert records(every_verdict())[1]["affected"][0]["ecosystem_specific"]["beside"] == ["flash-linear-attention==0.2"]


def test_without_a_server_there_are_no_addresses_of_ours() -> None:
    (record,) = records(extract(cell(Verdict.AFFECTED), links=None))
    assert [one["type"] for one in record["references"]] == ["REPORT"]
    assert "evidence" not in record["database_specific"]["measured"][0]


def test_nightlies_are_versions_like_others() -> None:
    assert affected(extract(cell(Verdict.AFFECTED, NIGHTLY), builds=(NIGHTLY,)))["versions"] == [NIGHTLY.torch]
