"""A ruling as a JUnit report, which GitLab, Jenkins and others show beside the tests of a pipeline.

| effect | test case |
| --- | --- |
| block | failure, its type the verdict |
| insufficient | error: a gate that refuses for want of evidence must not look green |
| warn | passed, with the warning as its output |
| pass | passed; skipped where the issue is ignored or does not apply |
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from knowngood.domain.verdicts.verdict import Verdict
from knowngood.gate.decision import Reason, Ruling
from knowngood.gate.policy import Effect
from knowngood.gate.renderers.common import (
    DECISIONS,
    all_lines,
    best_workaround,
    cure_in_words,
    fix_in_words,
    is_explained,
    one_line,
    other_workarounds,
    particulars,
)
from knowngood.gate.renderers.json import address

_ELEMENTS = {Effect.BLOCK: "failure", Effect.INSUFFICIENT: "error"}


def answer_junit(ruling: Ruling, base: str = "") -> str:
    """One test case for each reason; one for the answer itself where no reason carries it."""
    cases = [_case(reason, base) for reason in ruling.reasons]
    if not is_explained(ruling, ruling.reasons):
        cases.append(_refusal(ruling))
    named = {"name": f"Known Good: {one_line(ruling.build or 'not tested')}"}
    timed = {"timestamp": _utc(ruling.decided_at)} if ruling.decided_at else {}
    facts = {
        "decision": ruling.decision.value,
        "why": ruling.why,
        "build": ruling.build or "",
        "asked": ruling.asked,
        "nearest": ", ".join(ruling.nearest),
        "known_at": _utc(ruling.known_at) if ruling.known_at else "",
        **{f"note {number}": note for number, note in enumerate(ruling.notes, start=1)},
    }
    properties = {name: one_line(value) for name, value in facts.items() if value}
    suite = junit_suite({**named, **timed}, properties, cases)
    suites = ET.Element("testsuites", {name: suite.attrib[name] for name in ("tests", "failures", "errors")})
    suites.append(suite)
    ET.indent(suites)
    return "<?xml version='1.0' encoding='utf-8'?>\n" + ET.tostring(suites, encoding="unicode") + "\n"


def _utc(moment: datetime) -> str:
    """The time without its zone, as the format has it."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"


def _case(reason: Reason, base: str) -> ET.Element:
    attributes = {
        "name": f"{one_line(reason.issue)}: {one_line(reason.title)}",
        "classname": f"knowngood.{one_line(reason.hardware)}",
    }
    is_skipped = reason.effect is Effect.PASS and (reason.ignored or reason.verdict is Verdict.NOT_APPLICABLE)
    element = "skipped" if is_skipped else _ELEMENTS.get(reason.effect, "system-out")
    result = {"type": reason.verdict.value, "message": one_line(reason.why)} if element != "system-out" else {}
    return junit_case(attributes, element, "\n".join(_story(reason, base)), result)


def _story(reason: Reason, base: str) -> list[str]:
    cure, fix, others = best_workaround(reason), fix_in_words(reason), other_workarounds(reason)
    parts = (
        [("warning: " if reason.effect is Effect.WARN else "") + one_line(reason.why), ", ".join(particulars(reason))],
        [fix] if fix else [],
        ["workaround " + cure_in_words(cure), *all_lines(cure.snippet)] if cure else [],
        [f"workarounds, measured: {others}"] if others else [],
        [f"upstream: {one_line(reason.upstream)}"] if reason.upstream else [],
        [f"evidence: {one_line(address(base, reason.evidence_url))}"] if reason.evidence_url else [],
    )
    return [line for lines in parts for line in lines]


def _refusal(ruling: Ruling) -> ET.Element:
    text = "\n".join([DECISIONS[ruling.decision], one_line(ruling.why), *map(one_line, ruling.notes)])
    result = {"type": ruling.decision.value, "message": one_line(ruling.why)}
    return junit_case({"name": "the environment", "classname": "knowngood"}, "error", text, result)


# JUnit reports as XML: the parts that a ruling of the gate and a part of the matrix have in common.


_COUNTS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def junit_case(attributes: Mapping[str, str], element: str, text: str, details: Mapping[str, str]) -> ET.Element:
    """A test case with one `element` (failure, error, skipped, system-out) that holds `text`; without one it passed."""
    case = ET.Element("testcase", dict(attributes))
    if element:
        ET.SubElement(case, element, dict(details)).text = text
    return case


def junit_suite(
    attributes: Mapping[str, str], properties: Mapping[str, str], cases: Sequence[ET.Element]
) -> ET.Element:
    """A suite whose attributes count its cases by how they ended."""
    suite = ET.Element("testsuite", dict(attributes))
    if properties:
        listed = ET.SubElement(suite, "properties")
        listed.extend(ET.Element("property", {"name": name, "value": value}) for name, value in properties.items())
    suite.extend(cases)
    tags = Counter(child.tag for case in cases for child in case)
    suite.attrib |= {"tests": str(len(cases)), **{count: str(tags[element]) for count, element in _COUNTS.items()}}
    return suite
