"""The front page and `/api/v1/overview`: one value, whose releases are those of the release pages."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

from starlette.testclient import TestClient

from knowngood.domain.issue import Severity
from knowngood.store.counters import note_next_round, note_tended
from knowngood.store.engine import Engine, unit_of_work
from knowngood.store.evidence.cells import touch
from knowngood.web.html.i18n import exact
from tests.make import HARDWARE, NOON
from tests.store.test_unreadable import NO_JSON, damage
from tests.web import given
from tests.web.asking import answer_at, client_of, values_of
from tests.web.given import BAD, DYNAMO, GPU_CLASS, MASK, NOW, OLD, SILENT, Asked

OVERVIEW = "/api/v1/overview"


def overview(client: TestClient) -> Any:
    return answer_at(client, OVERVIEW)


def test_recent_releases_stand_as_on_their_own_pages_newest_first(client: TestClient) -> None:
    told = overview(client)
    assert [one["release"] for one in told["releases"]] == ["2.8.0", "2.7.1", "2.5.1"]
    for one in told["releases"]:
        own = client.get(f"/api/v1/releases/{one['release']}").json()
        assert {name: own[name] for name in one} == one
    assert told["new"] == client.get("/api/v1/releases/2.8.0").json()
    assert told["hardware"] == [HARDWARE, GPU_CLASS]


def test_the_page_says_what_its_twin_says_and_gives_nobody_advice(client: TestClient) -> None:
    values, told = values_of(client, "/"), overview(client)
    page = values["page"]
    assert [one.headline and one.release for one in page.releases] == [one["release"] for one in told["releases"]]
    assert [row.issue for row in values["lifespan_chart"]["rows"]] == told["severe"]
    text = client.get("/").text.partition("<main")[2]
    assert 'href="/releases/2.8.0"' in text
    assert "New in 2.8.0" in text
    assert [word for word in ("Stay on", "Go to torch", "What the signs mean") if word in text] == []


def test_the_most_severe_stand_first_and_what_never_failed_is_none_of_them(own: TestClient, own_engine: Engine) -> None:
    graver = replace(DYNAMO, severity=Severity.CRITICAL)
    given.save(own_engine, [MASK, replace(SILENT, severity=Severity.HIGH), graver, given.GPU_ONLY], given.BUILDS)
    given.run(own_engine, Asked([OLD, BAD], NOON, issues=[MASK, SILENT, graver]))
    assert overview(own)["severe"] == [SILENT.id, MASK.id]


def test_a_result_is_told_at_once(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    assert (overview(own)["new"], overview(own)["releases"]) == (None, [])
    given.run(own_engine, Asked([BAD], NOON, issues=[DYNAMO]))
    assert overview(own)["new"]["standings"][0]["passes"] == 1
    given.run(own_engine, Asked([BAD], NOON, issues=[MASK]))
    told = overview(own)
    assert told["new"]["standings"][0]["helped"] == 1
    assert told["newest"] is not None


def test_a_damaged_row_takes_nothing_else_away(own_engine: Engine) -> None:
    given.fill(own_engine)
    damage(own_engine, "issues.doc", NO_JSON)
    client = client_of(own_engine)
    assert overview(client)["issues"] == len(given.ISSUES) - 1
    assert client.get("/").status_code == 200


def test_an_empty_store_says_so_and_what_fills_it(own: TestClient) -> None:
    page = own.get("/").text
    assert "Nothing is measured here yet." in page
    assert "knowngood up" in page
    assert 'action="/search"' in page


def test_a_line_says_what_is_done_every_day_where_it_ever_was(own: TestClient, own_engine: Engine) -> None:
    assert 'id="tended"' not in own.get("/").text
    with unit_of_work(own_engine) as s:
        touch(s)
        for hours, (step, code) in enumerate([("discover", 1), ("site", 4), ("sweep", 0)]):
            note_tended(s, step, code, NOW - timedelta(hours=5 - hours))
        note_next_round(s, NOW + timedelta(hours=19))
    line = own.get("/").text.partition('<p class="quiet" id="tended">')[2].partition("</p>")[0]
    assert re.sub("<[^>]*>", "", line) == (
        "Tended 3 h ago: new releases (something was found), the site (failed), sweep; "
        f"next: new releases ({exact(NOW + timedelta(hours=19))})"
    )
    with unit_of_work(own_engine) as s:
        touch(s)
        note_next_round(s, NOW - timedelta(hours=1))
    assert "next: new releases</p>" in own.get("/").text, "nobody tends it any more: no time is told"
