"""Badges of watch lists, and what all badges have in common: who may keep them, and names that mean harm."""

import json
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

import pytest
from starlette.testclient import TestClient

from knowngood.domain.access import Scope
from knowngood.domain.issue_selectors import Watch, WatchListContent
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.store.engine import Engine
from knowngood.web.auth.principal import AccessPolicy
from tests.make import HARDWARE, NOON
from tests.web import given
from tests.web.asking import bearer, client_of
from tests.web.given import BAD, DYNAMO, GOOD, GPU_CLASS, GPU_ONLY, ISSUES, MASK, NEW, OLD, SILENT, Asked

LIST = "/badge/watchlists/vision-team"


def named(build: str, hardware: str = "") -> str:
    return f"?build={quote(build)}" + (f"&hardware={hardware}" if hardware else "")


def badge(client: TestClient, address: str) -> dict[str, Any]:
    response = client.get(address)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    found: dict[str, Any] = json.loads(response.content)
    return found


def test_a_watch_list_counts_what_fails_on_a_build(client: TestClient) -> None:
    told = badge(client, f"{LIST}.json{named(BAD.id)}")
    assert (told["schemaVersion"], told["label"]) == (1, f"vision-team ({HARDWARE})")
    assert told["message"] == f"1 of 2 fail on {BAD.torch}"


def test_only_a_list_all_of_which_was_measured_is_green(client: TestClient) -> None:
    green = badge(client, f"{LIST}.json{named(GOOD.id)}")
    assert green["message"] == f"all 2 pass on {GOOD.torch}"
    unmeasured = badge(client, f"{LIST}.json{named(NEW.id)}")
    assert unmeasured["message"] == f"0 of 2 pass, 2 unknown on {NEW.torch}"
    assert unmeasured["color"] != green["color"]


def test_old_evidence_says_so_on_a_list_too(client: TestClient) -> None:
    assert badge(client, f"{LIST}.json{named(OLD.id)}")["message"].endswith(f"on {OLD.torch} (old)")


def test_without_a_build_it_is_the_newest_release_with_an_answer(client: TestClient) -> None:
    assert badge(client, f"{LIST}.json")["message"] == f"all 2 pass on {GOOD.torch}"


def test_a_list_of_every_class_counts_the_worst_of_them_and_leaves_out_what_cannot_be(
    own: TestClient, own_engine: Engine
) -> None:
    given.save(own_engine, ISSUES, [BAD])
    given.run(own_engine, Asked([BAD], NOON), lambda *_: Outcome.PASS)
    given.watch(own_engine, "all", WatchListContent(Watch(issues=(DYNAMO.id, GPU_ONLY.id))))
    on_cpu = badge(own, f"/badge/watchlists/all.json{named(BAD.id)}")
    assert (on_cpu["label"], on_cpu["message"]) == (f"all ({HARDWARE})", f"all 1 pass on {BAD.torch}")
    given.run(own_engine, Asked([BAD], NOON, GPU_CLASS))
    everywhere = badge(own, f"/badge/watchlists/all.json{named(BAD.id)}")
    assert (everywhere["label"], everywhere["message"]) == ("all", f"1 of 2 fail on {BAD.torch}")
    only_cpu = badge(own, f"/badge/watchlists/all.json{named(BAD.id, HARDWARE)}")
    assert only_cpu["message"] == f"all 1 pass on {BAD.torch}"
    given.watch(own_engine, "gpu", WatchListContent(Watch(issues=(GPU_ONLY.id,))))
    nothing = badge(own, f"/badge/watchlists/gpu.json{named(BAD.id, HARDWARE)}")
    assert nothing["message"] == f"nothing to watch on {BAD.torch}"


def test_a_list_whose_issues_left_the_catalogue_never_passes(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, [MASK, SILENT], [GOOD])
    given.watch(own_engine, "both", WatchListContent(Watch(issues=(MASK.id, SILENT.id))))
    given.run(own_engine, Asked([GOOD], NOON, issues=[MASK, SILENT]), lambda *_: Outcome.PASS)
    assert "pass" in badge(own, "/badge/watchlists/both.json")["message"]
    given.save(own_engine, [MASK], [GOOD])
    assert badge(own, "/badge/watchlists/both.json")["message"] == "not run"


def test_the_picture_of_a_list_says_what_its_endpoint_says(client: TestClient) -> None:
    told = badge(client, f"{LIST}.json")
    response = client.get(f"{LIST}.svg")
    assert response.headers["content-type"] == "image/svg+xml"
    svg = ET.fromstring(response.content)  # noqa: S314 - ours
    assert svg.get("aria-label") == f"{told['label']}: {told['message']}"


@pytest.mark.parametrize("address", [f"/badge/{MASK.id}.svg", f"/badge/{MASK.id}.json", f"{LIST}.svg", f"{LIST}.json"])
def test_a_badge_may_be_kept_for_five_minutes_by_anybody_and_costs_one_query_after(
    client: TestClient, address: str
) -> None:
    first = client.get(address, headers={"Cookie": "lang=zh; theme=dark"})
    assert first.headers["cache-control"] == "public, max-age=300"
    assert "vary" not in first.headers
    assert first.headers["access-control-allow-origin"] == "*"
    again = client.get(address, headers={"If-None-Match": first.headers["etag"], "Cookie": "lang=zh; theme=dark"})
    assert (again.status_code, again.content) == (304, b"")


def test_a_badge_behind_closed_doors_is_kept_by_its_reader_alone(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, ISSUES, [GOOD])
    closed = client_of(own_engine, AccessPolicy(reads_need_token=True))
    assert closed.get(f"/badge/{MASK.id}.svg").status_code == 401
    secret = given.make_token(own_engine, Scope.READ)
    answer = closed.get(f"/badge/{MASK.id}.svg", headers=bearer(secret))
    assert answer.headers["cache-control"] == "private, no-cache"


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "x" * 5000, "..", "\0", "\u202eevil", "a\nb", "'\"&"])
def test_a_name_that_means_harm_is_refused_as_text(client: TestClient, name: str) -> None:
    for folder in ("/badge/", "/badge/watchlists/"):
        response = client.get(f"{folder}{quote(name, safe='')}.svg")
        assert response.status_code in {404, 422}
        assert response.headers["content-type"] == "application/problem+json"
        assert response.headers["x-content-type-options"] == "nosniff"


def test_a_class_or_build_that_is_not_here_is_refused_with_words(client: TestClient) -> None:
    for address, words in (
        (f"{LIST}.svg?hardware=cuda-sm_1", "was never measured here"),
        (f"{LIST}.json?build=torch-9.9.9", "no build is called"),
        ("/badge/watchlists/vision.svg", "vision-team"),
    ):
        response = client.get(address)
        assert response.status_code in {404, 422}
        assert words in response.text, address


def test_the_page_of_a_list_shows_its_badge_and_the_code_for_a_readme(client: TestClient) -> None:
    text = client.get("/watchlists/vision-team").text
    assert f'<img src="{LIST}.svg" alt="Badge: vision-team" height="20">' in text
    assert f"[![vision-team](http://testserver{LIST}.svg)](http://testserver/watchlists/vision-team)" in text


def test_the_watch_list_named_as_an_issue_is_not_mistaken_for_one(client: TestClient) -> None:
    assert client.get("/badge/vision-team.svg").status_code == 404
