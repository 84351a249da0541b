"""The JSON twins: shapes that others script against."""

import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from knowngood.store.engine import Engine
from tests.fixtures.databases import CountStatements
from tests.make import HARDWARE, NOON, make_build
from tests.web import given
from tests.web.given import BAD, BUILDS, DYNAMO, GOOD, ISSUES, NEW, OLD, Asked

CELL_KEYS = [
    "issue",
    "build",
    "hardware",
    "verdict",
    "reason",
    "measured_at",
    "control",
    "attempts",
    "silent",
    "proof",
    "not_covered",
    "reason_key",
    "reason_values",
    "stale",
    "signature_line",
    "evidence_url",
    "workarounds",
    "workaround_findings",
    "assurance",
    "grounds",
    "runs",
    "as_reported",
    "sign",
]


def get(client: TestClient, address: str) -> Any:
    response = client.get(address)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()


def cells_of(body: Any) -> dict[tuple[str, str, str], Any]:
    return {(cell["issue"], cell["build"], cell["hardware"]): cell for cell in body["cells"]}


def test_the_matrix_lists_every_cell_of_the_selection_not_run_ones_too(client: TestClient) -> None:
    body = get(client, "/api/v1/matrix")
    assert list(body) == ["issues", "builds", "cells"]
    cells = cells_of(body)
    assert len(cells) == len(body["cells"]) == len(ISSUES) * len(BUILDS) * 2
    assert cells["fla-160", NEW.id, HARDWARE]["verdict"] == "not_run"
    assert cells["fla-160", NEW.id, given.GPU_CLASS]["verdict"] == "not_applicable"


def test_json_is_never_folded_and_lists_the_pythons_that_were_measured_or_named(
    own: TestClient, own_engine: Engine
) -> None:
    measured, unmeasured = (
        make_build(plain.torch, pinned_triton=plain.pinned_triton, python="3.12") for plain in (BAD, GOOD)
    )
    given.save(own_engine, [DYNAMO], [BAD, GOOD, measured, unmeasured])
    given.run(own_engine, Asked([BAD, measured], NOON, issues=[DYNAMO]))
    for columns in ("all", "releases", "minors"):
        cells = cells_of(get(own, f"/api/v1/matrix?columns={columns}"))
        assert {build: cell["verdict"] for (_, build, _), cell in cells.items()} == {
            BAD.id: "not_affected",
            measured.id: "not_affected",
            GOOD.id: "not_run",
        }
    named = get(own, f"/api/v1/matrix?builds={unmeasured.id}")
    assert [(cell["build"], cell["verdict"]) for cell in named["cells"]] == [(unmeasured.id, "not_run")]


def test_a_cell_has_exactly_the_published_keys(client: TestClient) -> None:
    cell = cells_of(get(client, "/api/v1/matrix"))["pytorch-151290", BAD.id, HARDWARE]
    assert list(cell) == CELL_KEYS
    assert cell["verdict"] == "affected"
    assert cell["control"] == "pass"
    assert cell["attempts"] == {"match": 2, "pass": 2}
    assert cell["workarounds"] == {"eager_mask": "effective", "flags": "ineffective"}
    assert cell["signature_line"] == given.LINE
    assert cell["measured_at"] == "2026-11-21T13:00:05Z"
    assert cell["stale"] is False


def test_a_cell_without_evidence_has_no_address_of_it(client: TestClient) -> None:
    cell = cells_of(get(client, "/api/v1/matrix"))["fla-160", NEW.id, HARDWARE]
    assert (cell["evidence_url"], cell["measured_at"], cell["control"], cell["attempts"]) == (None, None, None, {})


def test_the_address_of_evidence_leads_to_the_attempt(client: TestClient) -> None:
    address = cells_of(get(client, "/api/v1/matrix"))["pytorch-151290", BAD.id, HARDWARE]["evidence_url"]
    attempt = get(client, f"/api/v1{address}")
    assert (attempt["arm"], attempt["variant"], attempt["outcome"]) == ("baseline", "big", "match")
    assert attempt["log"] == given.LOG
    assert attempt["imported"]["torch"] == BAD.torch
    assert attempt["machine"]["cpu_model"] == "AMD EPYC 7B13"
    assert client.get(attempt["log_url"]).text == given.LOG
    assert client.get(attempt["lock_url"]).text == given.LOCK


def test_titles_and_snippets_stand_once_in_the_issues(client: TestClient) -> None:
    issue = next(one for one in get(client, "/api/v1/matrix")["issues"] if one["id"] == "pytorch-151290")
    assert issue["title"].startswith("create_block_mask")
    assert issue["workarounds"][0]["body"] == "```python\nmask = make()\n```"
    assert "script" not in issue


@pytest.mark.parametrize(
    ("query", "issues", "builds", "cells"),
    [
        pytest.param(f"hardware={HARDWARE}", 4, 6, 24, id="one class"),
        pytest.param(f"issues=fla-160&builds={GOOD.id}", 1, 1, 2, id="one cell per class (+ is a space here)"),
        pytest.param("component=Dynamo&hardware=cpu-x86_64,cuda-sm_90", 1, 6, 12, id="classes as a list"),
        pytest.param("columns=releases&q=bmm", 1, 4, 8, id="the plain line"),
        pytest.param("columns=minors&verdict=flaky", 1, 4, 8, id="rows with a verdict"),
        pytest.param("q=nothing+like+it", 0, 6, 0, id="nothing"),
    ],
)
def test_a_selection_is_what_was_asked_for(
    client: TestClient, query: str, issues: int, builds: int, cells: int
) -> None:
    body = get(client, f"/api/v1/matrix?{query}")
    assert (len(body["issues"]), len(body["builds"]), len(body["cells"])) == (issues, builds, cells)


def test_an_empty_store_is_an_empty_matrix(own: TestClient) -> None:
    assert get(own, "/api/v1/matrix") == {"issues": [], "builds": [], "cells": []}


def test_issues_and_builds_are_listed_and_told_one_by_one(client: TestClient) -> None:
    assert {one["id"] for one in get(client, "/api/v1/issues")["issues"]} == {issue.id for issue in ISSUES}
    assert get(client, "/api/v1/builds")["builds"][0]["id"] == OLD.id
    issue = get(client, "/api/v1/issues/pytorch-151290")
    assert issue["history"] == [
        {
            "hardware": HARDWARE,
            "sentence": "fails in 2.7.1, fixed in 2.8.0",
            "beside": [],
            "measured": 3,
            "spans": [
                {
                    "first_bad": "2.7.1",
                    "last_bad": "2.7.1",
                    "does": "fails",
                    "broke_in": "(2.5.1, 2.7.1]",
                    "fixed_in": "(2.7.1, 2.8.0]",
                    "before": [],
                    "within": [],
                    "after": [],
                }
            ],
        }
    ]
    assert {cell["build"] for cell in issue["cells"]} == {OLD.id, BAD.id, GOOD.id, given.MISMATCHED.id}
    build = get(client, f"/api/v1/builds/{given.MISMATCHED.id}")
    assert (build["mismatched"], build["triton"], build["pinned_triton"]) == (True, "3.2.0", "3.3.1")
    assert len(build["cells"]) == len(ISSUES)


def test_a_cell_by_itself_adds_its_evidence_to_the_same_keys(client: TestClient) -> None:
    cell = get(client, f"/api/v1/cells/pytorch-151290/{BAD.id}")
    assert list(cell)[: len(CELL_KEYS)] == CELL_KEYS
    assert cell["sentence"].startswith(f"Fails on {BAD.in_words}")
    assert [(one["variant"], one["verdict"], one["k"], one["n"]) for one in cell["variants"]] == [
        ("big", "affected", 2, 2),
        ("small", "not_affected", 0, 2),
    ]
    assert {one["id"]: one["verdict"] for one in cell["findings"]} == cell["workarounds"]
    assert {one["arm"] for one in cell["evidence"]} == {"control", "baseline", "eager_mask", "flags"}


def test_runs_are_told_with_their_jobs(client: TestClient) -> None:
    runs = get(client, "/api/v1/runs?limit=2")["runs"]
    assert len(runs) == 2
    run = get(client, f"/api/v1{runs[0]['url']}")
    assert run == {**runs[0], "left_s": None}
    assert run["state"] == "done"
    assert run["arms_done"] == run["arms_total"] == sum(job["arms_total"] for job in run["jobs"])


def test_health_and_readiness_are_two_questions(client: TestClient) -> None:
    assert get(client, "/healthz") == {"status": "ok"}
    assert get(client, "/readyz") == {"status": "ready"}


def test_every_question_that_agents_are_told_to_ask_is_answered(client: TestClient) -> None:
    told = client.get("/llms.txt")
    assert told.headers["Content-Type"] == "text/plain; charset=utf-8"
    addresses = re.findall(r"\((http://testserver[^)]+)\)", told.text)
    assert len(addresses) > 8
    for address in addresses:
        assert client.get(address).status_code == 200, address


def test_the_reference_page_is_made_from_it(client: TestClient) -> None:
    text = client.get("/api/docs").text
    assert "GET /api/v1/cells/{issue}/{build}" in text
    assert "curl http://testserver/api/v1/matrix" in text
    assert "affected | bigger | more_work | slower | not_affected" in text
    assert "text/event-stream" in text


@pytest.mark.parametrize(
    ("address", "queries"),
    [
        ("/api/v1/matrix", 3),  # generation, classes, and whether what is kept is of it
        ("/api/v1/issues", 2),
        ("/api/v1/issues/pytorch-151290", 3),
        ("/api/v1/builds", 2),
        (f"/api/v1/builds/{BAD.id}", 3),
        (f"/api/v1/cells/pytorch-151290/{BAD.id}", 9),
        ("/api/v1/runs", 3),
        ("/api/v1/changes", 5),  # generation, issues, steps, imports, checks of builds
        (f"/api/v1/compare?a={OLD.id}&b={BAD.id}", 3),  # generation twice (it waits its turn), what is kept being of it
        ("/api/v1/charts", 2),
        ("/api/v1/lifespans", 2),
        ("/api/v1/coverage", 3),  # generation, what is kept being of it, queue
        ("/api/v1/overview", 2),  # generation, and what is kept being of it
        ("/api/v1/quality", 7),  # generation twice, trials, outcomes, times, events, attempts
        ("/api/v1/search?q=151290", 2),
        ("/healthz", 0),
    ],
)
def test_each_answer_takes_a_known_number_of_queries(
    client: TestClient, notebook: Engine, count_statements: CountStatements, address: str, queries: int
) -> None:
    get(client, "/api/v1/coverage")  # what is known is kept from now on
    get(client, "/api/v1/overview")
    with count_statements(notebook) as said:
        get(client, address)
    assert len(said) == queries, said
