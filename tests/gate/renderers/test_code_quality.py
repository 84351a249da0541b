"""GitLab's report: the fields that its documentation asks for, and nothing that passes."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import given

from knowngood.gate.decision import Ruling
from knowngood.gate.renderers.code_quality import answer_code_quality
from knowngood.gate.renderers.common import active_reasons
from tests.gate.rulings import BLOCKED, UNTESTED, make_reason, make_ruling, rulings, texts


def findings(ruling: Ruling, where: str = "requirements.txt") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(answer_code_quality(ruling, where=where))
    return found


def test_a_finding_says_why_and_what_helps_at_the_line_that_states_torch() -> None:
    first, second = findings(replace(BLOCKED, line=7))
    assert first == {
        "description": "xla-8464 on CPU: fails here, and the policy blocks what fails; fixed in torch 2.6.0; "
        "workaround that works here: Turn buffer donation off",
        "check_name": "xla-8464",
        "fingerprint": first["fingerprint"],
        "severity": "blocker",
        "location": {"path": "requirements.txt", "lines": {"begin": 7}},
    }
    assert (second["check_name"], second["severity"]) == ("pytorch-1", "minor")


def test_an_environment_that_nobody_tested_is_a_finding_of_its_own() -> None:
    (only,) = findings(UNTESTED)
    assert only["check_name"] == "knowngood-no-answer"
    assert only["severity"] == "major"
    assert only["description"].startswith("not tested: ")


def test_an_upgrade_that_does_not_help_keeps_the_finding() -> None:
    before, after = (findings(make_ruling(make_reason(build=build))) for build in ("torch-2.5.1+cu124", "torch-2.6.0"))
    assert before[0]["fingerprint"] == after[0]["fingerprint"]
    assert len({one["fingerprint"] for one in findings(BLOCKED)}) == len(findings(BLOCKED))


@given(rulings, texts)
def test_every_finding_has_what_gitlab_asks_for(ruling: Ruling, where: str) -> None:
    found = findings(ruling, where)
    assert len(found) >= len(active_reasons(ruling))
    for one in found:
        assert one["location"]["path"]
        assert one["location"]["lines"]["begin"] >= 1
        assert one["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert len(one["fingerprint"]) == 32
