from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta, timezone
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import junitparser
import pytest
from hypothesis import given

from knowngood.domain.verdicts.verdict import Verdict
from knowngood.gate.decision import Decision, Ruling
from knowngood.gate.policy import Effect
from knowngood.gate.renderers.common import one_line
from knowngood.gate.renderers.junit import answer_junit
from tests.gate.rulings import BLOCKED, SERVER, UNTESTED, make_reason, make_ruling, rulings

if TYPE_CHECKING:
    from xmlschema import XMLSchema


def cases_of(text: str) -> Iterator[tuple[str, str, str]]:
    """(name, element, its message or text) of every test case, as another's parser reads them."""
    suites = junitparser.JUnitXml.fromstring(text.encode())
    for suite in suites:
        for case in suite:
            for result in case.result:
                yield case.name, type(result).__name__.lower(), result.message
            if not case.result:
                yield case.name, "", case.system_out


def test_a_reason_is_a_test_case_of_its_effect(junit_schema: "XMLSchema") -> None:
    text = answer_junit(BLOCKED, SERVER)

    junit_schema.validate(text)
    title = "PyTorch/XLA reuses an executable that donates a live buffer: the process aborts"
    cases = list(cases_of(text))
    assert [(name, element) for name, element, _ in cases] == [
        (f"xla-8464: {title}", "failure"),
        (f"pytorch-1: {title}", ""),
        (f"pytorch-2: {title}", ""),
        (f"pytorch-3: {title}", "skipped"),
        (f"pytorch-4: {title}", "skipped"),
    ]
    assert cases[0][2] == "fails here, and the policy blocks what fails"
    assert cases[1][2].startswith("warning: fails here")
    failure = ET.fromstring(text).find(".//failure")  # noqa: S314 - our own text
    assert failure is not None
    assert failure.attrib["type"] == "affected"
    assert "export XLA_ENABLE_PARAM_ALIASING=0" in (failure.text or "")
    assert "\nfixed in torch 2.6.0\n" in (failure.text or "")
    assert f"{SERVER}/cells/xla-8464/" in (failure.text or "")


def test_the_suite_counts_and_says_what_was_decided() -> None:
    suite = ET.fromstring(answer_junit(BLOCKED)).find("testsuite")  # noqa: S314

    assert suite is not None
    numbers = ("tests", "failures", "errors", "skipped")
    assert {name: suite.attrib[name] for name in numbers} == dict(zip(numbers, ("5", "1", "0", "2"), strict=True))
    assert suite.attrib["timestamp"] == "2026-11-21T12:00:00"
    told = {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")}
    assert told["decision"] == "block"
    assert told["known_at"] == "2026-11-21T11:55:00"
    assert told["note 1"].startswith("assumed: every measured hardware")


@pytest.mark.parametrize(
    "ruling",
    [
        UNTESTED,
        make_ruling(),
        make_ruling(make_reason(effect=Effect.PASS, verdict=Verdict.NOT_APPLICABLE), decision=Decision.INSUFFICIENT),
        make_ruling(make_reason(effect=Effect.WARN), decision=Decision.INSUFFICIENT),
        make_ruling(decision=Decision.BLOCK),
    ],
    ids=["untested", "nothing", "no answer", "assumed", "blocked by nothing"],
)
def test_a_refusal_is_never_green(ruling: Ruling, junit_schema: "XMLSchema") -> None:
    text = answer_junit(ruling)

    junit_schema.validate(text)
    assert {"error", "failure"} & {element for _, element, _ in cases_of(text)}


@given(rulings)
def test_any_ruling_is_a_valid_report_with_its_texts(junit_schema: "XMLSchema", ruling: Ruling) -> None:
    text = answer_junit(ruling, SERVER)

    junit_schema.validate(text)
    cases = ET.fromstring(text.encode()).findall(".//testcase")  # noqa: S314
    expected = [f"{one_line(one.issue)}: {one_line(one.title)}" for one in ruling.reasons]
    assert [case.attrib["name"] for case in cases][: len(expected)] == expected
    is_green = not any(case.find(element) is not None for case in cases for element in ("failure", "error"))
    assert not is_green or ruling.decision is Decision.PASS


def test_times_stand_in_utc() -> None:
    assert BLOCKED.decided_at is not None
    elsewhere = replace(BLOCKED, decided_at=BLOCKED.decided_at.astimezone(timezone(timedelta(hours=8))))

    assert answer_junit(elsewhere) == answer_junit(BLOCKED)
