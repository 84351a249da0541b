import json
from dataclasses import fields, replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given
from jsonschema import Draft202012Validator, FormatChecker
from pydantic import TypeAdapter

from knowngood.gate.decision import Reason, Ruling
from knowngood.gate.renderers.json import address, dump_decision
from tests.gate.rulings import BLOCKED, SERVER, UNTESTED, make_reason, make_ruling, rulings

RULING = TypeAdapter(Ruling)
SCHEMA = Draft202012Validator(RULING.json_schema(mode="serialization"), format_checker=FormatChecker())


def decision_body(ruling: Ruling, base: str = "") -> Any:
    return json.loads(dump_decision(ruling, base))


def test_the_document_says_the_decision_and_each_reason() -> None:
    body = decision_body(BLOCKED, SERVER)

    assert body["decision"] == "block"
    assert body["counts"] == {"pass": 3, "warn": 1, "insufficient": 0, "block": 1}
    assert body["decided_at"] == "2026-11-21T12:00:00Z"
    first = body["reasons"][0]
    assert (first["issue"], first["effect"], first["verdict"]) == ("xla-8464", "block", "affected")
    assert first["evidence_url"] == f"{SERVER}/cells/xla-8464/torch-2.5.1%2Bcu124?hardware=cpu-x86_64"
    assert [workaround["id"] for workaround in first["workarounds"]] == ["no_aliasing", "out_of_place", "clone"]
    assert "export XLA_ENABLE_PARAM_ALIASING=0" in first["workarounds"][0]["snippet"]


@given(rulings)
@example(BLOCKED)
@example(UNTESTED)
@example(make_ruling())
def test_any_ruling_fits_what_openapi_tells(ruling: Ruling) -> None:
    body = decision_body(ruling, SERVER)

    SCHEMA.validate(body)
    assert RULING.dump_python(RULING.validate_python(body), mode="json") == body


def test_only_the_time_and_the_base_address_differ_between_server_and_snapshot() -> None:
    later = replace(BLOCKED, decided_at=datetime(2026, 12, 1, tzinfo=timezone(timedelta(hours=8))))
    server, snapshot = decision_body(BLOCKED, SERVER), decision_body(later)

    assert snapshot["decided_at"] == "2026-11-30T16:00:00Z"
    for body in (server, snapshot):
        del body["decided_at"]
        for reason in body["reasons"]:
            reason["evidence_url"] = reason["evidence_url"].removeprefix(SERVER)
    assert server == snapshot


@pytest.mark.parametrize(
    ("base", "path", "expected"),
    [
        ("", "/issues/a-1", "/issues/a-1"),
        ("https://kg.example", "/issues/a-1", "https://kg.example/issues/a-1"),
        ("https://kg.example/team/", "/issues/a-1", "https://kg.example/team/issues/a-1"),
        ("https://other.example", "https://kg.example/issues/a-1", "https://kg.example/issues/a-1"),
        ("https://kg.example", "", ""),
    ],
)
def test_a_base_comes_before_paths_alone(base: str, path: str, expected: str) -> None:
    assert address(base, path) == expected


def test_every_field_of_a_ruling_stands_in_the_document_in_its_order() -> None:
    body = decision_body(BLOCKED, SERVER)

    assert list(body) == [one.name for one in fields(Ruling)]
    assert list(body["reasons"][0]) == [one.name for one in fields(Reason)]


def test_a_reason_without_evidence_links_nowhere() -> None:
    body = decision_body(make_ruling(make_reason(evidence_url=None)), SERVER)

    assert body["reasons"][0]["evidence_url"] is None
