"""JUnit reports as XML: the parts that a ruling of the gate and a part of the matrix have in common."""

from collections import Counter
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

_COUNTS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def junit_case(attributes: Mapping[str, str], element: str, text: str, said: Mapping[str, str]) -> ET.Element:
    """A test case with one `element` (failure, error, skipped, system-out) that holds `text`; without one it passed."""
    case = ET.Element("testcase", dict(attributes))
    if element:
        ET.SubElement(case, element, dict(said)).text = text
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
    found = Counter(child.tag for case in cases for child in case)
    suite.attrib |= {"tests": str(len(cases)), **{count: str(found[element]) for count, element in _COUNTS.items()}}
    return suite
