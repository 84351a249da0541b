import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft4Validator
from markdown_it import MarkdownIt

from knowngood.domain.verdicts.verdict import WorkaroundVerdict
from knowngood.gate.decision import Decision, MeasuredWorkaround, Reason, Ruling
from knowngood.gate.policy import Effect
from knowngood.gate.renderers.sarif import PLACEHOLDER, answer_sarif
from tests.gate.rulings import BLOCKED, SERVER, UNTESTED, make_reason, make_ruling, rulings, texts

SCHEMA_FILE = Path(__file__).parents[2] / "schemas" / "sarif-2.1.0-rtm.5.json"
SCHEMA = Draft4Validator(json.loads(SCHEMA_FILE.read_text()), format_checker=Draft4Validator.FORMAT_CHECKER)


def run_of(ruling: Ruling, base: str = "", where: str = "") -> dict[str, Any]:
    log = json.loads(answer_sarif(ruling, base, where=where))
    SCHEMA.validate(log)
    [run] = log["runs"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    return dict(run)


def fingerprint(reason: Reason, where: str = "requirements.txt") -> str:
    [result] = run_of(make_ruling(reason), SERVER, where)["results"]
    return str(result["partialFingerprints"]["primaryLocationLineHash"])


def test_the_schema_is_the_real_one_and_refuses_what_it_should() -> None:
    log = json.loads(answer_sarif(BLOCKED, SERVER))
    log["runs"][0]["results"][0]["level"] = "fatal"
    log["runs"][0]["colour"] = "red"
    log["runs"][0]["results"][0]["hostedViewerUri"] = "not an address"

    assert len(list(SCHEMA.iter_errors(log))) == 3


def test_a_result_tells_why_and_its_rule_the_cure() -> None:
    run = run_of(BLOCKED, SERVER, "requirements.txt")

    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert list(rules) == ["xla-8464", "pytorch-1"]
    assert [(one["ruleId"], one["level"]) for one in run["results"]] == [
        ("xla-8464", "error"),
        ("pytorch-1", "warning"),
    ]
    first = run["results"][0]
    assert first["message"]["text"] == "fails here, and the policy blocks what fails"
    assert first["hostedViewerUri"].startswith(f"{SERVER}/cells/xla-8464/")
    artifact = first["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "requirements.txt", "uriBaseId": "%SRCROOT%"}
    rule = rules["xla-8464"]
    assert rule["helpUri"] == f"{SERVER}/issues/xla-8464"
    assert "export XLA_ENABLE_PARAM_ALIASING=0" in rule["help"]["text"]
    fences = [token for token in MarkdownIt().parse(rule["help"]["markdown"]) if token.type == "fence"]
    assert [token.content for token in fences] == ["export XLA_ENABLE_PARAM_ALIASING=0\n"]
    assert "Upgrade: fixed in torch 2.6.0." in rule["help"]["markdown"]
    assert run["properties"]["decision"] == "block"


def test_an_alert_stands_at_the_line_that_states_torch() -> None:
    for line, shown in ((7, 7), (0, 1)):
        results = run_of(replace(BLOCKED, line=line), SERVER, "requirements.txt")["results"]
        assert {one["locations"][0]["physicalLocation"]["region"]["startLine"] for one in results} == {shown}


def test_without_a_server_nothing_links() -> None:
    run = run_of(BLOCKED)

    assert not any("helpUri" in rule for rule in run["tool"]["driver"]["rules"])
    assert not any("hostedViewerUri" in result for result in run["results"])


def test_an_alert_outlives_an_upgrade_that_does_not_help() -> None:
    before, after = make_reason(), make_reason(build="torch-2.5.2+cu124", why="still", age_days=0)

    assert fingerprint(before) == fingerprint(after)
    others = [make_reason("other-1"), make_reason(hardware="cuda-sm_90")]
    assert fingerprint(before) not in {*map(fingerprint, others), fingerprint(before, "other.txt")}


@pytest.mark.parametrize(
    ("where", "uri"),
    [
        ("", PLACEHOLDER),
        ("./requirements.txt", "requirements.txt"),
        ("a b/ü#1.txt", "a%20b/%C3%BC%231.txt"),
        ("ci\\requirements.txt", "ci/requirements.txt"),
        ("c:/x.txt", "c%3A/x.txt"),
        ("../x.txt", "../x.txt"),
    ],
)
def test_a_location_is_a_relative_reference_to_the_file(where: str, uri: str) -> None:
    [result] = run_of(make_ruling(make_reason()), where=where)["results"]

    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": uri, "uriBaseId": "%SRCROOT%"}


@pytest.mark.parametrize(
    ("ruling", "level"),
    [
        (UNTESTED, "warning"),
        (make_ruling(), "warning"),
        (make_ruling(decision=Decision.BLOCK), "error"),
        (make_ruling(make_reason(effect=Effect.WARN), decision=Decision.INSUFFICIENT), "warning"),
    ],
    ids=["untested", "nothing", "blocked", "assumed"],
)
def test_a_refusal_that_no_reason_carries_is_a_result_of_its_own(ruling: Ruling, level: str) -> None:
    last = run_of(ruling)["results"][-1]

    assert (last["ruleId"], last["level"]) == ("knowngood-no-answer", level)
    assert ruling.why in last["message"]["text"]


def test_what_passes_is_no_result() -> None:
    assert run_of(make_ruling(make_reason(effect=Effect.PASS)))["results"] == []


def test_one_rule_serves_every_hardware_class() -> None:
    run = run_of(make_ruling(make_reason(), make_reason(hardware="cuda-sm_90")))

    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["xla-8464"]
    assert [result["ruleIndex"] for result in run["results"]] == [0, 0]


def test_a_message_holds_no_link() -> None:
    [result] = run_of(make_ruling(make_reason(why="see [here](https://evil.example)")))["results"]

    assert "](" not in result["message"]["text"]


@given(rulings, texts)
def test_any_ruling_is_valid_sarif(ruling: Ruling, where: str) -> None:
    answer_sarif(ruling, SERVER, where=where).encode()
    run_of(ruling, SERVER, where)


def test_a_snippet_that_is_left_open_ends_before_what_follows() -> None:
    workaround = MeasuredWorkaround("c", "C", WorkaroundVerdict.EFFECTIVE, "", "```\nopen", runs=3)
    [rule] = run_of(make_ruling(make_reason(workarounds=(workaround, replace(workaround, id="d")))))["tool"]["driver"][
        "rules"
    ]

    tokens = [token for token in MarkdownIt().parse(rule["help"]["markdown"]) if token.level == 0]
    assert tokens[-1].type == "paragraph_close"
    assert all("workaround that works here (3 runs), C:" in text for text in rule["help"].values())
