"""Every row with its pattern over the releases, and what is open, on a page and as JSON."""

from dataclasses import replace

from starlette.testclient import TestClient

from knowngood.domain.measuring.placement import Why
from knowngood.domain.measuring.planning import PlanRequest
from knowngood.domain.message import english
from knowngood.domain.vocabulary import VERDICTS
from knowngood.health.coverage import Coverage, cells_by_class, coverage_of
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.jobs.job_queue import DISPATCHER, take_lease
from knowngood.store.jobs.workers import offer_classes
from knowngood.store.knowledge.loader import load_known
from tests.make import HARDWARE, NOON
from tests.store.given import given_run
from tests.web import given
from tests.web.asking import shown, values_of
from tests.web.given import BAD, DYNAMO, GOOD, MASK, OLD, SILENT, Asked


def test_every_row_has_one_sign_per_column_and_its_history(client: TestClient) -> None:
    page, tables = shown(client, "/coverage", Coverage), values_of(client, "/coverage")["tables"]
    assert [one.hardware for one in page.hardware] == list(tables) == [HARDWARE, given.GPU_CLASS]
    _, components = tables[HARDWARE]
    rows = {row[0].issue: row for rows in components.values() for row in rows}
    assert set(rows) == {MASK.id, SILENT.id, DYNAMO.id}
    assert [square.sign for square in rows[MASK.id][1]] == ["passes", "cure", "passes"]
    assert english(rows[MASK.id][0].history) == "fails in 2.7.1, fixed in 2.8.0"
    assert (rows[SILENT.id][0].measured, rows[SILENT.id][0].conclusive) == (3, 2)
    for id_ in rows:
        assert f'href="/issues/{id_}?hardware={HARDWARE}"' in client.get("/coverage").text


def test_the_page_and_its_twin_say_the_same(client: TestClient) -> None:
    page = shown(client, "/coverage", Coverage)
    told = client.get("/api/v1/coverage").json()
    assert [one["hardware"] for one in told["hardware"]] == [one.hardware for one in page.hardware]
    cpu = told["hardware"][0]
    assert cpu["builds"] == [OLD.id, BAD.id, GOOD.id]
    assert {row["issue"]: row["pattern"] for row in cpu["rows"]}[DYNAMO.id] == [
        "different_failure",
        "not_affected",
        "not_affected",
    ]
    assert sum(one["measured"] for one in told["hardware"]) == sum(one.measured for one in page.hardware)
    assert [one["build"] for one in told["gaps"]] == [gap.build for gap in page.gaps]
    assert [(one["issue"], one["build"]) for one in told["doubtful"]] == [
        (cell.issue, cell.build) for cell in page.doubtful
    ]
    assert {one["issue"] for one in told["unproven"]} == {one.issue for one in page.unproven} == {DYNAMO.id}


def test_doubtful_cells_say_why(client: TestClient) -> None:
    cells = shown(client, "/coverage", Coverage).doubtful
    assert {(cell.issue, cell.build, VERDICTS[cell.verdict].label) for cell in cells} == {
        (DYNAMO.id, OLD.id, "different"),
        (SILENT.id, GOOD.id, "unsure"),
    }
    assert all(english(cell.reason) and client.get(cell.url).status_code == 200 for cell in cells)


def test_only_workarounds_that_could_be_tried_are_missing(own: TestClient, own_engine: Engine) -> None:
    arms = tuple(replace(arm, applies_to=">=2.8") if arm.id == "flags" else arm for arm in MASK.arms)
    issue = replace(MASK, arms=arms)
    given.save(own_engine, [issue], [BAD])
    given.run(own_engine, Asked([BAD], NOON, issues=[issue], wanted=PlanRequest(where_affected=True)))
    assert [gap.workaround for gap in shown(own, "/coverage", Coverage).gaps] == ["eager_mask"]
    given.run(own_engine, Asked([BAD], NOON, issues=[issue]))
    assert shown(own, "/coverage", Coverage).gaps == ()


def test_with_nothing_measured_the_page_says_what_to_run(own: TestClient) -> None:
    assert "knowngood up" in own.get("/coverage").text
    assert own.get("/api/v1/coverage").json() == {
        "hardware": [],
        "gaps": [],
        "doubtful": [],
        "unproven": [],
        "contradictions": [],
        "waiting": [],
    }


def test_what_nobody_can_take_is_said_with_its_reason(own: TestClient, own_engine: Engine) -> None:
    given_run(own_engine, at=NOON)
    assert [one.why for one in shown(own, "/coverage", Coverage).waiting] == [Why.NO_DISPATCHER]
    assert "No dispatcher is at work" in own.get("/coverage").text
    with unit_of_work(own_engine) as s:
        take_lease(s, DISPATCHER, "dispatcher-1", given.NOW, 60.0)
        offer_classes(s, ["cuda-sm_90"], "dispatcher-1", given.NOW, 60.0)
    assert f"No worker of class {HARDWARE} has joined." in own.get("/coverage").text
    assert own.get("/api/v1/coverage").json()["waiting"] == [
        {
            "hardware": HARDWARE,
            "jobs": 1,
            "why": "no_worker",
            "reason": f"no worker of class {HARDWARE} has joined; none ever has",
            "last_seen_at": None,
        }
    ]
    with unit_of_work(own_engine) as s:
        offer_classes(s, [HARDWARE], "dispatcher-1", given.NOW, 60.0)
    assert shown(own, "/coverage", Coverage).waiting == ()
    assert own.get("/api/v1/coverage").json()["waiting"] == []


def test_counting_the_cells_alone_gives_what_the_patterns_add_up_to(notebook: Engine) -> None:
    with reading(notebook) as s:
        known = load_known(s, NOON)
    patterns = {one.hardware: (one.measured, one.applicable) for one in coverage_of(known).hardware}
    assert cells_by_class(known) == patterns
    assert len(patterns) == 2
