"""`/changes`, its JSON twin and the feed; and badges."""

import json
from typing import Any
from xml.etree import ElementTree as ET

import feedparser
import pytest
from starlette.testclient import TestClient

from app.domain.outcome import Outcome
from app.store.session import Engine
from app.web.pages.changes import ChangesPage
from app.web.signs import Sign
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.web import given
from tests.web.asking import shown
from tests.web.given import BAD, GOOD, GPU_CLASS, Asked


def changes(client: TestClient, query: str = "") -> list[dict[str, Any]]:
    response = client.get(f"/api/v1/changes{query}")
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["changes"]
    return found


def test_what_changed_is_told_newest_first_with_its_cause(client: TestClient) -> None:
    found = changes(client)
    assert [one["at"] for one in found] == sorted((one["at"] for one in found), reverse=True)
    second = next(one for one in found if one["cells"][0]["after"] == "flaky")
    (cell,) = second["cells"]
    assert (second["issue"], second["cause"], cell["before"]) == ("pytorch-154771", "run", "affected")
    assert cell["reason"] == "1 of 2 attempts ended with the issue's own signature, others passed"
    for address in (second["url"], second["run_url"], cell["url"]):
        assert client.get(address).status_code == 200


def test_the_page_the_twin_and_the_feed_tell_the_same(client: TestClient) -> None:
    told = [one["issue"] for one in changes(client)]
    page = shown(client, "/changes", ChangesPage)
    assert [entry.change.issue for entry in page.entries] == told
    feed = feedparser.parse(client.get(page.feed).content)
    assert not feed.bozo
    assert [entry.title.partition(":")[0] for entry in feed.entries] == told
    assert [entry.link for entry in feed.entries] == [f"http://testserver/issues/{issue}" for issue in told]


def test_the_page_shows_before_and_after_by_their_signs(client: TestClient) -> None:
    page = shown(client, "/changes", ChangesPage)
    flaky = next(line for entry in page.entries for line in entry.lines if line.after.sign is Sign.FLAKY)
    assert flaky.before is not None
    assert (flaky.before.sign, flaky.after.word) == (Sign.FAILS, "flaky")
    text = client.get("/changes").text
    assert 'type="application/atom+xml"' in text
    assert "Nothing has changed yet." not in text


def test_only_of_the_issues_asked_for_everywhere(client: TestClient) -> None:
    query = "?issues=pytorch-154771,fla-160&limit=2"
    assert {one["issue"] for one in changes(client, query)} <= {"pytorch-154771", "fla-160"}
    assert len(changes(client, query)) == 2
    page = shown(client, "/changes?issues=fla-160&lang=zh", ChangesPage)
    assert {entry.change.issue for entry in page.entries} == {"fla-160"}
    assert (page.feed, page.json_address) == ("/feeds/changes.atom?issues=fla-160", "/api/v1/changes?issues=fla-160")
    assert len(feedparser.parse(client.get(page.feed).content).entries) == len(page.entries)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/api/v1/changes?issues=fla-16", "nearest: fla-160"),
        ("/api/v1/changes?limit=0", "limit"),
        ("/api/v1/changes?since=1", "since"),
        ("/feeds/changes.atom?issues=fla-16", "nearest: fla-160"),
        ("/badge/fla-16.svg", "fla-16"),
        (f"/badge/fla-160.json?build={BAD.id}&hardware=cuda-sm_1", "was never measured here"),
        ("/badge/fla-160.json?build=2.6", "does not start with"),
    ],
)
def test_a_question_without_an_answer_is_a_problem_for_programs(client: TestClient, address: str, words: str) -> None:
    response = client.get(address)
    assert response.status_code in {404, 422}
    assert response.headers["content-type"] == "application/problem+json"
    assert words in response.json()["detail"]


def test_a_poll_of_a_feed_that_has_nothing_new_costs_nothing(client: TestClient) -> None:
    first = client.get("/feeds/changes.atom")
    assert first.headers["content-type"] == "application/atom+xml; charset=utf-8"
    again = client.get("/feeds/changes.atom", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_an_empty_store_says_that_nothing_changed(own: TestClient) -> None:
    assert changes(own) == []
    assert "Nothing has changed yet." in own.get("/changes").text
    assert feedparser.parse(own.get("/feeds/changes.atom").content).entries == []


def test_a_change_of_many_cells_is_cut_on_the_page_and_whole_in_the_twin(
    own: TestClient, sqlite_engine: Engine
) -> None:
    issue = make_issue("toy-1", workarounds=())
    builds = [make_build(f"2.{minor}.{patch}+cu124") for minor in range(1, 7) for patch in range(5)]
    given.save(sqlite_engine, [issue], builds)
    given.run(sqlite_engine, Asked(builds, NOON, issues=[issue]), lambda _spec, _arm: Outcome.PASS)
    (entry,) = shown(own, "/changes", ChangesPage).entries
    assert (len(entry.lines), entry.more) == (20, 10)
    assert len(changes(own)[0]["cells"]) == 30
    assert "and 10 more" in own.get("/changes").text


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


def test_what_nobody_measured_is_never_a_pass(client: TestClient, own: TestClient, sqlite_engine: Engine) -> None:
    new = badge(client, f"/badge/fla-160.json?build={given.NEW.id.replace('+', '%2B')}")
    assert new["message"] == f"not run on {given.NEW.torch}"
    given.save(sqlite_engine, given.ISSUES, given.BUILDS)
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
