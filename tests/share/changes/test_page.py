"""`/changes`, its JSON twin and the feed; and badges."""

import json
import re
from functools import partial
from typing import Any
from xml.etree import ElementTree as ET

import feedparser
import pytest
from starlette.testclient import TestClient

from knowngood.domain.builds.packages import BuildCheck
from knowngood.domain.issue_selectors import Watch, WatchListContent
from knowngood.domain.measuring.job import ArmSpec, JobSpec
from knowngood.domain.measuring.planning import PlanRequest
from knowngood.domain.message import english
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.domain.vocabulary import StatusLabel
from knowngood.share.atom import title_of
from knowngood.share.service import News
from knowngood.store.engine import Engine, unit_of_work
from knowngood.store.evidence.changes import note_checks
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.web import given
from tests.web.asking import answer_at, shown, values_of
from tests.web.given import BAD, GOOD, GPU_CLASS, Asked


def changes(client: TestClient, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer_at(client, f"/api/v1/changes{query}")["changes"]
    return found


def feed(client: TestClient, address: str) -> Any:
    response = client.get(address)
    assert response.status_code == 200, response.text
    found = feedparser.parse(response.content)
    assert not found.bozo, found.get("bozo_exception")
    return found


def test_only_what_became_another_verdict_is_told(client: TestClient) -> None:
    """The notebook has dozens of first measurements, and one cell that turned flaky."""
    (found,) = changes(client)
    (cell,) = found["cells"]
    assert (found["issues"], found["cause"]) == (["pytorch-154771"], "run")
    assert (cell["before"], cell["after"], cell["first"]) == ("affected", "flaky", False)
    assert cell["reason"] == "1 of 2 attempts ended with the issue's own signature, others passed"
    for address in (found["run_url"], cell["url"]):
        assert client.get(address).status_code == 200


def test_first_measurements_are_told_where_they_are_asked_for_and_said_to_be_that(client: TestClient) -> None:
    found = changes(client, "?first=true")
    assert [one["at"] for one in found] == sorted((one["at"] for one in found), reverse=True)
    cells = [cell for one in found for cell in one["cells"]]
    assert {cell["first"] for cell in cells if cell["before"] == "not_run"} == {True}
    assert sum(not cell["first"] for cell in cells) == 1
    assert found[-1]["summary"].startswith("measured for the first time: ")
    text = client.get("/changes?first=true").text
    assert "never measured" in text
    assert "Without first measurements" in text


@pytest.mark.parametrize("query", ["", "?first=true"])
def test_the_page_the_twin_and_the_feed_tell_the_same(client: TestClient, query: str) -> None:
    told = [one["key"] for one in changes(client, query)]
    page = shown(client, f"/changes{query}", News)
    assert [change.key for change in page.changes] == told
    found = feed(client, values_of(client, f"/changes{query}")["feed"])
    assert [entry.title for entry in found.entries] == [english(title_of(change)) for change in page.changes]
    for entry in found.entries:
        assert client.get(entry.link.removeprefix("http://testserver")).status_code == 200


def test_the_page_shows_before_and_after_by_their_signs(client: TestClient) -> None:
    (change,) = shown(client, "/changes", News).changes
    (turn,) = change.turns
    assert (turn.before, turn.after) == (Verdict.AFFECTED, Verdict.FLAKY)
    text = client.get("/changes").text
    assert re.findall(r'<span class="chip (\w+)">', text) == [StatusLabel.FAILS, StatusLabel.FLAKY]
    assert "No verdict has changed yet." not in text


def test_only_of_the_issues_asked_for_everywhere(client: TestClient) -> None:
    query = "?issues=pytorch-154771,fla-160&limit=2&first=true"
    assert {issue for one in changes(client, query) for issue in one["issues"]} == {"pytorch-154771", "fla-160"}
    assert len(changes(client, query)) == 2
    address, asked = "/changes?issues=fla-160&first=true&lang=zh", "?issues=fla-160&first=true"
    page = shown(client, address, News)
    assert {issue for change in page.changes for issue in change.issues} == {"fla-160"}
    assert values_of(client, address)["feed"] == f"/feeds/changes.atom{asked}"
    assert f'href="/api/v1/changes{asked.replace("&", "&amp;")}"' in client.get(address).text
    assert len(feed(client, f"/feeds/changes.atom{asked}").entries) == len(page.changes)


FEEDS = {
    "/changes": "/feeds/changes.atom",
    "/changes?issues=pytorch-154771": "/feeds/issues/pytorch-154771.atom",
    "/changes?component=Inductor+C%2B%2B": "/feeds/components/Inductor%20C%2B%2B.atom",
    "/changes?line=torch-2.7.x": "/feeds/lines/2.7.atom",
    "/changes?watch=vision-team": "/feeds/watchlists/vision-team.atom",
}


@pytest.mark.parametrize(("page", "address"), FEEDS.items())
def test_every_page_of_changes_names_its_feed_and_the_feed_its_page(
    client: TestClient, page: str, address: str
) -> None:
    text = client.get(page).text
    (found,) = re.findall(r'<link rel="alternate" type="application/atom\+xml" title="[^"]+" href="([^"]+)">', text)
    assert found == address
    told = feed(client, address)
    links = {link.rel: link.href for link in told.feed.links}
    assert links["self"] == f"http://testserver{address}"
    back = client.get(links["alternate"].removeprefix("http://testserver"))
    assert f'href="{address}"' in back.text


def outcome_of_baseline(told: Outcome, _: JobSpec, arm: ArmSpec) -> Outcome:
    return told if arm.arm == "baseline" else Outcome.PASS


def test_a_feed_tells_of_its_own_thing_alone_and_its_entries_have_ids_of_their_own(
    own: TestClient, own_engine: Engine
) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    for told in (Outcome.PASS, Outcome.MATCH):
        asked = Asked([BAD, GOOD], NOON, issues=[given.MASK, given.DYNAMO], wanted=PlanRequest(force=True))
        given.run(own_engine, asked, partial(outcome_of_baseline, told))
    given.watch(own_engine, "mine", WatchListContent(Watch(issues=(given.DYNAMO.id,))))
    addresses = [
        "/feeds/changes.atom",
        f"/feeds/issues/{given.MASK.id}.atom",
        "/feeds/components/Dynamo.atom",
        "/feeds/lines/2.8.atom",
        "/feeds/watchlists/mine.atom",
        "/feeds/lines/2.9.atom",
    ]
    feeds = {address: feed(own, address).entries for address in addresses}
    titles = [entries[0].title if entries else "" for entries in feeds.values()]
    assert [title.partition(" on ")[0] for title in titles] == [
        "2 issues: is flaky",
        f"{given.MASK.id}: is flaky",
        "fla-160: is flaky",
        "2 issues: is flaky",
        "fla-160: is flaky",
        "",
    ]
    ids = [entry.id for entries in feeds.values() for entry in entries]
    assert len(ids) == len(set(ids)) == 5


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/api/v1/changes?issues=fla-16", "nearest: fla-160"),
        ("/api/v1/changes?component=Dynamit", "nearest: Dynamo"),
        ("/api/v1/changes?line=2.77", "no line of torch"),
        ("/api/v1/changes?watch=vision", "no watch list"),
        ("/api/v1/changes?limit=0", "limit"),
        ("/api/v1/changes?since=1", "since"),
        ("/feeds/changes.atom?issues=fla-16", "nearest: fla-160"),
        ("/feeds/issues/fla-16.atom", "nearest: fla-160"),
        ("/feeds/components/Dynamit.atom", "nearest: Dynamo"),
        ("/feeds/lines/2.7.1.atom", "nearest: 2.7"),
        ("/feeds/watchlists/vision.atom", "no watch list"),
        ("/badge/fla-16.svg", "fla-16"),
        (f"/badge/fla-160.json?build={BAD.id}&hardware=cuda-sm_1", "was never measured here"),
        ("/badge/fla-160.json?build=2.6", "no build is called"),
    ],
)
def test_a_question_without_an_answer_is_a_problem_for_programs(client: TestClient, address: str, words: str) -> None:
    response = client.get(address)
    assert response.status_code in {404, 422}
    assert response.headers["content-type"] == "application/problem+json"
    assert words in response.json()["detail"]


@pytest.mark.parametrize("address", FEEDS.values())
def test_a_poll_of_a_feed_that_has_nothing_new_costs_nothing(client: TestClient, address: str) -> None:
    first = client.get(address)
    assert first.headers["content-type"] == "application/atom+xml; charset=utf-8"
    again = client.get(address, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_build_that_went_is_told_everywhere_but_of_issues(own: TestClient, own_engine: Engine) -> None:
    with unit_of_work(own_engine) as s:
        note_checks(s, [BuildCheck(BAD.id, is_installable=False, why="torch was <yanked>")], NOON)
    (found,) = changes(own)
    assert (found["cause"], found["cells"], found["summary"]) == (
        "index",
        [],
        f"{BAD.in_words} can no longer be installed",
    )
    assert found["builds"] == [{"build": BAD.id, "is_installable": False, "why": "torch was <yanked>"}]
    page = own.get("/changes").text
    assert f"{BAD.in_words} can no longer be installed" in page
    assert "torch was &lt;yanked&gt;" in page
    (entry,) = feed(own, "/feeds/changes.atom").entries
    assert (entry.title, "torch was &lt;yanked&gt;" in entry.content[0].value) == (found["summary"], True)
    assert [one["key"] for one in changes(own, "?limit=1")] == [found["key"]]


def test_an_empty_store_says_that_nothing_changed(own: TestClient) -> None:
    assert changes(own) == []
    assert "No verdict has changed yet." in own.get("/changes").text
    assert feed(own, "/feeds/changes.atom").entries == []


def test_a_change_of_many_cells_is_cut_on_the_page_and_whole_in_the_twin(own: TestClient, own_engine: Engine) -> None:
    issue = make_issue("toy-1", workarounds=())
    builds = [make_build(f"2.{minor}.{patch}+cu124") for minor in range(1, 7) for patch in range(5)]
    given.save(own_engine, [issue], builds)
    given.run(own_engine, Asked(builds, NOON, issues=[issue]), lambda _spec, _arm: Outcome.PASS)
    assert len(changes(own, "?first=true")[0]["cells"]) == 30
    text = own.get("/changes?first=true").text
    assert text.count("never measured") == 20
    assert "and 10 more" in text


def test_a_watch_list_whose_issue_left_the_catalogue_says_so(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    given.watch(own_engine, "mine", WatchListContent(Watch(issues=(given.DYNAMO.id,))))
    given.save(own_engine, [given.MASK], given.BUILDS)
    response = own.get("/feeds/watchlists/mine.atom")
    assert (response.status_code, "cannot be read any more" in response.json()["detail"]) == (422, True)


def badge(client: TestClient, address: str) -> dict[str, Any]:
    response = client.get(address)
    assert response.headers["content-type"] == "application/json"
    found: dict[str, Any] = json.loads(response.content)
    return found


def test_a_badge_tells_one_cell_and_without_a_build_the_newest_release_with_an_answer(client: TestClient) -> None:
    build = BAD.id.replace("+", "%2B")
    named = badge(client, f"/badge/pytorch-151290.json?build={build}&hardware={HARDWARE}")
    assert (named["label"], named["message"]) == ("pytorch-151290 (cpu-x86_64)", f"fails on {BAD.torch}")
    assert badge(client, "/badge/pytorch-151290.json")["message"] == f"passes on {GOOD.torch}"
    on_gpu = badge(client, "/badge/pytorch-151589.json")
    assert (on_gpu["label"], on_gpu["message"]) == (f"pytorch-151589 ({GPU_CLASS})", f"fails on {BAD.torch}")


def test_what_nobody_measured_is_never_a_pass(client: TestClient, own: TestClient, own_engine: Engine) -> None:
    new = badge(client, f"/badge/fla-160.json?build={given.NEW.id.replace('+', '%2B')}")
    assert new["message"] == f"not run on {given.NEW.torch}"
    given.save(own_engine, given.ISSUES, given.BUILDS)
    assert badge(own, "/badge/fla-160.json")["message"] == "not run"


def test_old_evidence_says_so_on_the_badge(client: TestClient) -> None:
    old = given.OLD.id.replace("+", "%2B")
    assert badge(client, f"/badge/pytorch-154771.json?build={old}")["message"] == f"fails on {given.OLD.torch} (old)"


def test_the_drawn_badge_says_what_the_endpoint_says(client: TestClient) -> None:
    told = badge(client, "/badge/pytorch-151290.json")
    response = client.get("/badge/pytorch-151290.svg")
    assert response.headers["content-type"] == "image/svg+xml"
    svg = ET.fromstring(response.content)  # noqa: S314 - ours
    assert svg.get("aria-label") == f"{told['label']}: {told['message']}"
    assert (
        client.get("/badge/pytorch-151290.svg", headers={"If-None-Match": response.headers["etag"]}).status_code == 304
    )
