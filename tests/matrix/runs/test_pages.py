"""Runs: what was asked, what goes on now, what came out; live by events and readable without scripts."""

from datetime import timedelta

from starlette.testclient import TestClient

from knowngood.domain.measuring.job import Provisioning
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.vocabulary import StatusLabel
from knowngood.matrix.runs.run_page import RunPage
from knowngood.matrix.runs.runs_page import RunsPage
from knowngood.matrix.runs.time_left import load_time_left
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.jobs.event_recorder import LOSS_LIMIT, lose_job, record_event
from knowngood.store.jobs.job_queue import cancel_run
from knowngood.store.queries import RunState, load_run
from tests.fixtures.databases import CountStatements
from tests.web import given
from tests.web.asking import shown
from tests.web.given import BAD, DYNAMO, GOOD, NOW, Asked

EARLIER = NOW - timedelta(minutes=2)


def run_page(client: TestClient, run: str) -> RunPage:
    return shown(client, f"/runs/{run}", RunPage)


def given_queue(engine: Engine) -> str:
    given.save(engine, given.ISSUES, given.BUILDS)
    return given.queue(engine, Asked([BAD, GOOD], EARLIER, issues=[DYNAMO]))


def test_runs_are_listed_newest_first_with_what_was_asked_for(client: TestClient) -> None:
    page = shown(client, "/runs", RunsPage)
    assert len(page.lines) == 5
    assert page.lines[0].run.created_at > page.lines[-1].run.created_at
    assert page.lines[0].asked == BAD.id
    assert {line.run.state for line in page.lines} == {RunState.DONE}


def test_an_empty_list_says_how_to_fill_it(own: TestClient) -> None:
    assert "knowngood up" in own.get("/runs").text


def test_a_waiting_run_is_followed_with_and_without_scripts(own: TestClient, own_engine: Engine) -> None:
    run = given_queue(own_engine)
    page = run_page(own, run)
    assert page.line.run.finished_at is None
    assert page.left_s is None
    assert page.live_address.startswith(f"/api/v1/events?run={run}&after=")
    text = own.get(f"/runs/{run}").text
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
    assert run_page(own, run).jobs[0].doing == "installing packages: torch, 1.4 GB of 3.1 GB"
    given.begin(own_engine, spec, EARLIER)
    assert run_page(own, run).jobs[0].doing == "environment ready after 12 s"
    given.start(own_engine, spec, spec.arms[0], EARLIER)
    assert run_page(own, run).jobs[0].doing == "fla-160 control"
    given.finish(own_engine, spec, spec.arms[0], Outcome.PASS, EARLIER)
    page = run_page(own, run)
    with reading(own_engine) as s:
        assert page.left_s == load_time_left(s, load_run(s, run), NOW), "what a terminal says of it"
    assert page.left_s
    assert own.get(f"/api/v1/runs/{run}").json()["left_s"] == page.left_s
    assert (page.share, page.line.run.state) == (25, RunState.RUNNING)
    assert [(line.sign, line.title, line.what) for line in page.results] == [
        (StatusLabel.PASSES, DYNAMO.title, f"fla-160 · control · {BAD.id}")
    ]


def test_a_finished_run_stands_still(client: TestClient) -> None:
    run = client.get("/api/v1/runs").json()["runs"][0]["id"]
    page = run_page(client, run)
    assert (page.line.run.finished_at is not None, page.live_address, page.share) == (True, "", 100)
    text = client.get(f"/runs/{run}").text
    assert "data-live" not in text
    assert "refresh" not in text


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
    assert run_page(own, run).line.run.state is RunState.CANCELLED


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
