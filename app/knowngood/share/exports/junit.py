"""The matrix as a JUnit report: one suite per build and hardware class, one test case per issue.

| verdict | test case |
| --- | --- |
| affected, flaky, different_failure | failure, its type the verdict |
| inconclusive | error |
| not_applicable, no_build, not_run | skipped, with the reason |
| not_affected | passed |
| any of them, inferred | skipped, its type `inferred`: nothing ran here; the message says what is inferred from where |

A suite with inferred cells says how many in its property `inferred`.
"""

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as ET

from knowngood.domain.grouping import grouped
from knowngood.domain.issue import Issue
from knowngood.domain.message import english
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import Cell, Verdict
from knowngood.gate.renderers.junit import junit_case, junit_suite
from knowngood.share.exports.extract import Extract, xml_text

_ELEMENTS = {
    Verdict.AFFECTED: "failure",
    Verdict.FLAKY: "failure",
    Verdict.BIGGER: "failure",
    Verdict.MORE_WORK: "failure",
    Verdict.SLOWER: "failure",
    Verdict.DIFFERENT_FAILURE: "failure",
    Verdict.INCONCLUSIVE: "error",
    Verdict.NOT_APPLICABLE: "skipped",
    Verdict.NO_BUILD: "skipped",
    Verdict.NOT_RUN: "skipped",
}


def junit_matrix(extract: Extract) -> Iterator[bytes]:
    """The document in pieces, one suite each. It holds no times: what a cell took is no duration of a test."""
    issues = {issue.id: issue for issue in extract.issues}
    suites = grouped(extract.cells, lambda cell: (cell.build, cell.hardware))
    yield b"<?xml version='1.0' encoding='utf-8'?>\n<testsuites name=\"Known Good\">\n"
    for (build, hardware), cells in suites.items():
        yield ET.tostring(_suite(extract, f"{build} on {hardware}", cells, issues), encoding="unicode").encode() + b"\n"
    yield b"</testsuites>\n"


def _suite(extract: Extract, name: str, cells: Sequence[Cell], issues: dict[str, Issue]) -> ET.Element:
    inferred = sum(1 for cell in cells if cell.basis)
    properties = {"inferred": str(inferred)} if inferred else {}
    suite = junit_suite({"name": name}, properties, [_case(extract, issues[cell.issue], cell) for cell in cells])
    suite.set("time", "0")
    return suite


def _case(extract: Extract, issue: Issue, cell: Cell) -> ET.Element:
    named = {"classname": xml_text(f"{issue.component}.{cell.hardware}"), "name": xml_text(issue.id), "time": "0"}
    reason = english(cell.reason)
    kind, message = ("inferred", f"{cell.verdict}, {reason}") if cell.basis else (cell.verdict, reason)
    element = "skipped" if cell.basis else _ELEMENTS.get(cell.verdict, "")
    text = xml_text("\n".join(_details(extract, issue, cell)))
    return junit_case(named, element, text, {"message": xml_text(message), "type": kind})


def _details(extract: Extract, issue: Issue, cell: Cell) -> Iterator[str]:
    yield issue.title
    yield f"sign: {status_of(cell)}"
    if cell.line:
        yield cell.line
    for id_, finding in cell.workarounds.items():
        yield f"workaround {id_}: {finding.verdict}" + (f" ({english(finding.note)})" if finding.note else "")
    address = extract.evidence_address(cell)
    if address:
        yield f"evidence: {address}"
