"""The matrix as JUnit, against the schema that CI servers read it by."""

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given as given_any
from hypothesis import strategies as st

from knowngood.domain.verdicts.verdict import Verdict
from knowngood.share.exports.extract import Extract, xml_text
from knowngood.share.exports.junit import junit_matrix
from tests.make import HARDWARE, make_issue
from tests.share.exports.given import GPU_CLASS, V27, V27_PY312, cell, every_verdict, extract, hostile, inferred

if TYPE_CHECKING:
    from xmlschema import XMLSchema


def document(given: Extract) -> ET.Element:
    return ET.fromstring(b"".join(junit_matrix(given)))  # noqa: S314 - we wrote it


@pytest.mark.parametrize("given", [every_verdict(), hostile(), extract()], ids=["every verdict", "hostile", "empty"])
def test_the_report_is_valid(given: Extract, junit_schema: "XMLSchema") -> None:
    junit_schema.validate(ET.ElementTree(document(given)))


def test_the_schema_would_have_refused_something_else(junit_schema: "XMLSchema") -> None:
    root = document(every_verdict())
    root[0].append(ET.Element("surprise"))
    assert not junit_schema.is_valid(ET.ElementTree(root))


@pytest.mark.parametrize(
    ("verdict", "element"),
    [
        (Verdict.AFFECTED, "failure"),
        (Verdict.FLAKY, "failure"),
        (Verdict.DIFFERENT_FAILURE, "failure"),
        (Verdict.NOT_AFFECTED, None),
        (Verdict.INCONCLUSIVE, "error"),
        (Verdict.NOT_APPLICABLE, "skipped"),
        (Verdict.NO_BUILD, "skipped"),
        (Verdict.NOT_RUN, "skipped"),
    ],
)
def test_a_cell_is_one_case_and_only_a_measured_pass_is_a_pass(verdict: Verdict, element: str | None) -> None:
    (case,) = document(extract(cell(verdict))).iter("testcase")
    assert [(child.tag, child.get("type"), child.get("message")) for child in case] == (
        [(element, verdict.value, f"because it is {verdict}")] if element else []
    )


@pytest.mark.parametrize("verdict", [Verdict.AFFECTED, Verdict.NOT_AFFECTED])
def test_an_inferred_cell_is_skipped_and_says_what_is_inferred_from_where(
    verdict: Verdict, junit_schema: "XMLSchema"
) -> None:
    root = document(extract(inferred(verdict), builds=(V27, V27_PY312)))
    junit_schema.validate(ET.ElementTree(root))
    counts = {name: root[0].get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "1", "failures": "0", "errors": "0", "skipped": "1"}
    assert [(one.get("name"), one.get("value")) for one in root.iter("property")] == [("inferred", "1")]
    (said,) = root.iter("skipped")
    assert (said.get("type"), said.get("message")) == ("inferred", f"{verdict}, inferred from {V27.id}: because")


def test_suites_are_builds_on_hardware_and_count_what_they_hold() -> None:
    given = every_verdict()
    suites = {suite.get("name"): suite for suite in document(given)}
    assert f"torch-2.8.0+cu124 on {GPU_CLASS}" in suites
    assert sum(int(suite.get("tests", "")) for suite in suites.values()) == len(given.cells)
    on_27 = suites[f"{V27.id} on {HARDWARE}"]
    counts = {name: on_27.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "3", "failures": "2", "errors": "0", "skipped": "1"}
    assert [case.get("name") for case in on_27] == ["toy-1", "fla-2", "usage.3"]


def test_a_failure_tells_the_line_the_workarounds_and_where_the_evidence_is() -> None:
    (said,) = next(document(every_verdict()).iter("testcase"))
    assert said.text is not None
    assert said.text.splitlines()[1:] == [
        "sign: cure",
        "error: conflicting",
        "workaround good: effective",
        "workaround bad: ineffective (still fails)",
        "workaround needless: unnecessary",
        "workaround untried: unverified (not run yet)",
        "evidence: https://kg.example/attempts/toy-1-torch-2.5.0%2Bcu124-baseline",
    ]


@given_any(st.text(), st.text())
def test_any_text_makes_a_document_that_can_be_read(reason: str, title: str) -> None:
    issue = make_issue(title=title, component=title)
    (case,) = document(extract(cell(Verdict.AFFECTED, reason=reason), issues=(issue,))).iter("testcase")
    assert case[0].get("message") == xml_text(reason)


def test_hostile_texts_are_text() -> None:
    (said,) = next(document(hostile()).iter("testcase"))
    assert said.text is not None
    assert "]]> <b>&amp;</b>" in said.text
    assert "\x00" not in said.text
    assert "\r\nnext\tline" in (said.get("message") or "")
