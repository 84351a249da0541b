"""The front door and `/api/v1/overview`: the same numbers on both, and those of the cells."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Device, Severity
from knowngood.domain.measuring.planning import PlanRequest
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.status import Prospect
from knowngood.store.counters import note_next_round, note_tended
from knowngood.store.engine import Engine, unit_of_work
from knowngood.store.evidence.cells import touch
from knowngood.web.html.i18n import exact
from tests.make import HARDWARE, NOON
from tests.store.test_unreadable import NO_JSON, damage
from tests.web import given
from tests.web.asking import client_of, values_of
from tests.web.given import BAD, DYNAMO, GOOD, GPU_CLASS, MASK, MISMATCHED, NOW, OLD, SILENT, Asked

OVERVIEW = "/api/v1/overview"


def overview(client: TestClient, **asked: str) -> Any:
    response = client.get(OVERVIEW, params=asked)
    assert response.status_code == 200, response.text
    return response.json()


def counted(client: TestClient, build: str, hardware: str) -> Counter[str]:
    """The prospects of a column, told from the cells of the matrix by other words than the domain's."""
    cells = client.get("/api/v1/matrix", params={"builds": build, "hardware": hardware}).json()["cells"]
    return Counter(_told(cell) for cell in cells)


def _told(cell: Mapping[str, Any]) -> str:
    match cell["verdict"]:
        case "not_affected":
            return "passes"
        case "not_applicable":
            return "does_not_apply"
        case "affected" if cell["as_reported"] == "not_affected":
            return "as_reported"
        case "affected" | "flaky" | "different_failure":
            return "needs_workaround" if "effective" in cell["workarounds"].values() else "fails"
        case _:
            return "not_known"


@pytest.mark.parametrize("hardware", [HARDWARE, GPU_CLASS])
@pytest.mark.parametrize("build", [OLD.id, BAD.id, GOOD.id, MISMATCHED.id])
def test_a_build_stands_as_its_cells_do(client: TestClient, build: str, hardware: str) -> None:
    standing = overview(client, build=build, hardware=hardware)["standing"]
    assert (standing["build"], standing["hardware"]) == (build, hardware)
    told = counted(client, build, hardware)
    assert {name.value: standing[name] for name in Prospect} == {name.value: told[name] for name in Prospect}


def test_every_measured_release_stands_as_its_cells_do(client: TestClient) -> None:
    releases = overview(client)["releases"]
    assert [(one["build"], one["hardware"]) for one in releases] == [
        (OLD.id, HARDWARE),
        (BAD.id, HARDWARE),
        (GOOD.id, HARDWARE),
        (BAD.id, GPU_CLASS),
    ]
    for one in releases:
        told = counted(client, one["build"], one["hardware"])
        assert {name.value: one[name] for name in Prospect} == {name.value: told[name] for name in Prospect}


def test_the_page_says_the_numbers_of_its_twin(client: TestClient) -> None:
    values = values_of(client, f"/?mine={quote(BAD.id)}")
    page, yours = values["page"], values["page"].yours
    told = client.get(values["json_address"]).json()
    standing = told["standing"]
    assert (yours.standing.build, yours.standing.hardware) == (standing["build"], standing["hardware"])
    assert {name.value: getattr(yours.standing, name.value) for name in Prospect} == {
        name.value: standing[name] for name in Prospect
    }
    assert (len(page.catalogue), page.builds, page.news.cells) == (
        told["issues"],
        told["builds"],
        told["changes"]["cells"],
    )
    assert [row.issue for row in values["lifespan_chart"]["rows"]] == [one["issue"] for one in told["severe"]]
    assert [row[2:7] for chart in values["rates"] for row in chart["rows"]] == [
        tuple(str(one[name]) for name in ("passes", "as_reported", "needs_workaround", "fails", "not_known"))
        for one in told["releases"]
    ]


@pytest.mark.parametrize("hardware", [HARDWARE, GPU_CLASS])
def test_answers_from_the_cpu_are_none_on_a_gpu_while_the_two_are_not_known_to_agree(
    own: TestClient, own_engine: Engine, hardware: str
) -> None:
    portable = replace(DYNAMO, requires=replace(DYNAMO.requires, device=Device.ANY))
    given.save(own_engine, [portable, given.GPU_ONLY], given.BUILDS)
    given.run(own_engine, Asked([GOOD], NOON, issues=[portable]))
    given.run(own_engine, Asked([GOOD], NOON, hardware=GPU_CLASS, issues=[given.GPU_ONLY]))
    address = f"/?mine={quote(GOOD.id)}&gpu={hardware}"
    values = values_of(own, address)
    yours = values["page"].yours
    not_known = yours.standing.not_known
    assert (yours.standing.answers, not_known, yours.from_cpu) == (1, int(hardware == GPU_CLASS), 0)


@pytest.mark.parametrize("hardware", [HARDWARE, GPU_CLASS])
@pytest.mark.parametrize("build", [OLD, BAD, GOOD])
def test_where_to_go_next_is_the_advice_of_an_upgrade(client: TestClient, build: Build, hardware: str) -> None:
    asked = {"from": build.id, "hardware": hardware}
    advice = client.get("/api/v1/upgrade", params=asked).json()
    told = overview(client, build=build.id, hardware=hardware)["next"]
    assert (told["decision"], told["build"]) == (advice["decision"], advice["build"])
    assert f"{told['answer']} {told['because']}" == advice["answer"]


def test_without_a_build_it_is_about_the_newest_that_was_measured(client: TestClient) -> None:
    told = overview(client)
    assert (told["example"], told["standing"]["build"]) == (True, GOOD.id)
    assert overview(client, hardware=GPU_CLASS)["standing"]["build"] == BAD.id
    page = client.get("/").text
    assert "On the newest release" in page
    assert 'href="/my-build"' in page


def test_the_most_severe_stand_first_and_what_never_failed_is_none_of_them(own: TestClient, own_engine: Engine) -> None:
    graver = replace(DYNAMO, severity=Severity.CRITICAL)
    given.save(own_engine, [MASK, replace(SILENT, severity=Severity.HIGH), graver, given.GPU_ONLY], given.BUILDS)
    given.run(own_engine, Asked([OLD, BAD], NOON, issues=[MASK, SILENT, graver]))
    told = overview(own, build=OLD.id)
    assert [one["issue"] for one in told["severe"]] == [SILENT.id, MASK.id]
    assert [one["issue"] for one in told["watch_out"]] == [SILENT.id]
    assert overview(own, build=GOOD.id)["watch_out"] == []


def test_changes_of_the_last_thirty_days_are_counted(own_engine: Engine) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    given.run(own_engine, Asked([BAD], NOON - timedelta(days=40), issues=[MASK]))
    again = PlanRequest(repeat=2)
    given.run(own_engine, Asked([BAD], NOW, issues=[MASK], wanted=again), lambda *_: Outcome.PASS)
    client = client_of(own_engine)
    told = overview(client)["changes"]
    every = client.get("/api/v1/changes").json()["changes"]
    assert told["since"] == (NOW - timedelta(days=30)).date().isoformat()
    assert told["cells"] == sum(len(change["cells"]) for change in every) > 0
    assert told["issues"] == [MASK.id]
    assert values_of(client, "/")["page"].news.newest[0].build == BAD.id


def test_a_result_is_told_at_once(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    assert overview(own)["standing"] is None
    given.run(own_engine, Asked([BAD], NOON, issues=[DYNAMO]))
    assert overview(own)["standing"]["passes"] == 1
    given.run(own_engine, Asked([BAD], NOON, issues=[MASK]))
    told = overview(own)
    assert told["standing"]["needs_workaround"] == 1
    assert told["newest"] is not None


def test_an_empty_store_says_so_and_what_fills_it(own: TestClient) -> None:
    page = own.get("/").text
    assert "Nothing is measured here yet." in page
    assert "knowngood up" in page
    assert 'action="/search"' in page


def test_a_damaged_row_takes_the_advice_away_and_nothing_else(own_engine: Engine) -> None:
    given.fill(own_engine)
    assert overview(client_of(own_engine), build=BAD.id)["next"] is not None
    damage(own_engine, "issues.doc", NO_JSON)
    client = client_of(own_engine)
    told = overview(client, build=BAD.id)
    assert told["next"] is None
    assert told["issues"] == len(given.ISSUES) - 1
    page = client.get(f"/?mine={quote(BAD.id)}")
    assert page.status_code == 200
    assert "No advice can be given from what is stored." in page.text


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ("build=9.9.9", "build"),
        ("hardware=cuda-sm_10", "hardware"),
        ("bild=2.7.1", "bild"),
    ],
)
def test_what_is_not_known_is_refused_by_its_name(client: TestClient, asked: str, field: str) -> None:
    response = client.get(f"{OVERVIEW}?{asked}")
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == field


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
