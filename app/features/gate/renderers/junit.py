"""A ruling as a JUnit report, which GitLab, Jenkins and others show beside the tests of a pipeline.

| effect | test case |
| --- | --- |
| block | failure, its type the verdict |
| insufficient | error: a gate that refuses for want of evidence must not look green |
| warn | passed, with the warning as its output |
| pass | passed; skipped where the issue is ignored or does not apply |
"""

from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from knowngood.app.domain.verdicts.verdict import Verdict
from knowngood.app.features.gate.decision import Reason, Ruling
from knowngood.app.features.gate.policy import Effect
from knowngood.app.features.gate.renderers.common import (
    DECISIONS,
    all_lines,
    best_cure,
    fixed,
    is_explained,
    one_line,
    other_cures,
    particulars,
)
from knowngood.app.features.gate.renderers.json import address

_COUNTS = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def answer_junit(ruling: Ruling, base: str = "") -> str:
    """One test case for each reason; one for the answer itself where no reason carries it."""
    cases = [_case(reason, base) for reason in ruling.reasons]
    if not is_explained(ruling, ruling.reasons):
        cases.append(_refusal(ruling))
    suite = ET.Element("testsuite", {"name": f"Known Good: {one_line(ruling.build or 'not tested')}"})
    if ruling.decided_at:
        suite.set("timestamp", _utc(ruling.decided_at))
    _properties(suite, ruling)
    suite.extend(cases)
    counts = {"tests": str(len(cases))} | {
        plural: str(sum(case.find(element) is not None for case in cases)) for element, plural in _COUNTS.items()
    }
    suite.attrib |= counts
    suites = ET.Element("testsuites", {name: counts[name] for name in ("tests", "failures", "errors")})
    suites.append(suite)
    ET.indent(suites)
    return "<?xml version='1.0' encoding='utf-8'?>\n" + ET.tostring(suites, encoding="unicode") + "\n"


def _utc(moment: datetime) -> str:
    """Without its zone, as the format has it."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"


def _properties(suite: ET.Element, ruling: Ruling) -> None:
    facts = {
        "decision": ruling.decision.value,
        "why": ruling.why,
        "build": ruling.build or "",
        "asked": ruling.asked,
        "nearest": ", ".join(ruling.nearest),
        "known_at": _utc(ruling.known_at) if ruling.known_at else "",
        **{f"note {number}": note for number, note in enumerate(ruling.notes, start=1)},
    }
    properties = ET.SubElement(suite, "properties")
    for name, value in facts.items():
        if value:
            ET.SubElement(properties, "property", {"name": name, "value": one_line(value)})


def _case(reason: Reason, base: str) -> ET.Element:
    case = ET.Element(
        "testcase",
        {
            "name": f"{one_line(reason.issue)}: {one_line(reason.title)}",
            "classname": f"knowngood.{one_line(reason.hardware)}",
        },
    )
    element = _element(reason)
    text = "\n".join(_story(reason, base))
    if element:
        marked = ET.SubElement(case, element, _why(reason))
        marked.text = text
    else:
        ET.SubElement(case, "system-out").text = text
    return case


def _element(reason: Reason) -> str:
    match reason.effect:
        case Effect.BLOCK:
            return "failure"
        case Effect.INSUFFICIENT:
            return "error"
        case Effect.WARN:
            return ""
        case Effect.PASS:
            return "skipped" if reason.ignored or reason.verdict is Verdict.NOT_APPLICABLE else ""


def _why(reason: Reason) -> dict[str, str]:
    return {"type": reason.verdict.value, "message": one_line(reason.why)}


def _story(reason: Reason, base: str) -> list[str]:
    lines = [one_line(reason.why), ", ".join(particulars(reason))]
    if reason.effect is Effect.WARN:
        lines[0] = f"warning: {lines[0]}"
    if fixed(reason):
        lines.append(fixed(reason))
    cure = best_cure(reason)
    if cure:
        lines += [f"workaround that works here, {one_line(cure.id)}: {one_line(cure.title)}", *all_lines(cure.snippet)]
    if other_cures(reason):
        lines.append(f"workarounds, measured: {other_cures(reason)}")
    if reason.upstream:
        lines.append(f"upstream: {one_line(reason.upstream)}")
    if reason.evidence:
        lines.append(f"evidence: {one_line(address(base, reason.evidence))}")
    return lines


def _refusal(ruling: Ruling) -> ET.Element:
    case = ET.Element("testcase", {"name": "the environment", "classname": "knowngood"})
    attributes = {"type": ruling.decision.value, "message": one_line(ruling.why)}
    ET.SubElement(case, "error", attributes).text = "\n".join(
        [DECISIONS[ruling.decision], one_line(ruling.why), *map(one_line, ruling.notes)]
    )
    return case
