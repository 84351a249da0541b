"""Runs: what was asked, what goes on now, what came out; live by events and readable without scripts."""

from datetime import timedelta
from typing import Any

from markupsafe import escape
from starlette.testclient import TestClient

from knowngood.domain.measuring.job import Provisioning
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.jobs.durations import load_time_left
from knowngood.store.jobs.event_recorder import LOSS_LIMIT, lose_job, record_event
from knowngood.store.jobs.job_queue import cancel_run
from knowngood.store.queries import RunState, load_run
from tests.fixtures.databases import CountStatements
from tests.web import given
from tests.web.asking import shown
from tests.web.given import BAD, DYNAMO, GOOD, NOW, Asked

EARLIER = NOW - timedelta(minutes=2)


def run_page(client: TestClient, run: str) -> dict[str, Any]:
    return shown(client, f"/runs/{run}", dict)


def given_queue(engine: Engine) -> str:
    given.save(engine, given.ISSUES, given.BUILDS)
    return given.queue(engine, Asked([BAD, GOOD], EARLIER, issues=[DYNAMO]))


def test_runs_are_listed_newest_first_with_what_was_asked_for(client: TestClient) -> None:
    runs = shown(client, "/runs", dict)["runs"]
    assert len(runs) == 5
    assert runs[0].created_at > runs[-1].created_at
    assert f'<td class="why">{BAD.id}</td>' in client.get("/runs").text
    assert {run.state for run in runs} == {RunState.DONE}


def test_an_empty_list_says_how_to_fill_it(own: TestClient) -> None:
    assert "knowngood up" in own.get("/runs").text


def test_a_waiting_run_is_followed_with_and_without_scripts(own: TestClient, own_engine: Engine) -> None:
    run = given_queue(own_engine)
    page = run_page(own, run)
    assert (page["run"].finished_at, page["left_s"]) == (None, None)
    text = own.get(f"/runs/{run}").text
    assert f'data-live="/api/v1/events?run={run}&amp;after=' in text
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in text
    assert "Load it now" in text
    assert "0 of 4 attempts done" in " ".join(text.split())


def test_a_running_job_says_what_it_does_now_and_the_run_what_is_left(own: TestClient, own_engine: Engine) -> None:
    run = given_queue(own_engine)
    spec = given.claim(own_engine, EARLIER)
    assert spec is not None
    downloading = Provisioning(spec.job, spec.try_no, "sync", "torch", 1_400_000_000, 3_100_000_000)
    with unit_of_work(own_engine) as s:
        record_event(s, downloading, EARLIER)
    assert run_page(own, run)["doing"][spec.job] == "installing packages: torch, 1.4 GB of 3.1 GB"
    given.begin(own_engine, spec, EARLIER)
    assert run_page(own, run)["doing"][spec.job] == "environment ready after 12 s"
    given.start(own_engine, spec, spec.arms[0], EARLIER)
    assert run_page(own, run)["doing"][spec.job] == "fla-160 control"
    given.finish(own_engine, spec, spec.arms[0], Outcome.PASS, EARLIER)
    page = run_page(own, run)
    with reading(own_engine) as s:
        assert page["left_s"] == load_time_left(s, load_run(s, run), NOW), "what a terminal says of it"
    assert own.get(f"/api/v1/runs/{run}").json()["left_s"] == page["left_s"] > 0
    assert page["run"].state is RunState.RUNNING
    assert [one.data["outcome"] for one in page["results"]] == [Outcome.PASS]
    told = ('<progress max="100" value="25"', str(escape(DYNAMO.title)), f"fla-160 · control · {BAD.id}")
    assert [one for one in told if one not in " ".join(own.get(f"/runs/{run}").text.split())] == []


def test_a_finished_run_stands_still(client: TestClient) -> None:
    run = client.get("/api/v1/runs").json()["runs"][0]["id"]
    text = client.get(f"/runs/{run}").text
    assert '<progress max="100" value="100"' in text
    assert [one for one in ("data-live", "refresh") if one in text] == []


def test_a_job_that_was_given_up_says_why(own: TestClient, own_engine: Engine) -> None:
    run = given_queue(own_engine)
    spec = given.claim(own_engine, EARLIER)
    assert spec is not None
    for _ in range(LOSS_LIMIT):
        with unit_of_work(own_engine) as s:
            lose_job(s, spec.job, spec.try_no, "the worker was killed", EARLIER)
        spec = given.claim(own_engine, EARLIER) or spec
    assert "the worker was killed" in own.get(f"/runs/{run}").text


def test_a_cancelled_run_says_so(own: TestClient, own_engine: Engine) -> None:
    run = given_queue(own_engine)
    with unit_of_work(own_engine) as s:
        cancel_run(s, run, NOW)
    assert run_page(own, run)["run"].state is RunState.CANCELLED


def test_a_run_page_takes_six_queries(client: TestClient, notebook: Engine, count_statements: CountStatements) -> None:
    run = client.get("/api/v1/runs").json()["runs"][0]["id"]
    with count_statements(notebook) as said:
        client.get(f"/runs/{run}")
    assert len(said) == 6, said  # generation, the run, its jobs, the last event, its newest events, what is known


def test_the_list_of_runs_takes_three_queries(
    client: TestClient, notebook: Engine, count_statements: CountStatements
) -> None:
    with count_statements(notebook) as said:
        client.get("/runs")
    assert len(said) == 3, said  # generation, runs, their jobs
