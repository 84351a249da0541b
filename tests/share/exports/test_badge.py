"""Badges: the strict JSON of shields.io, and an SVG that says the same."""

import json
from xml.etree import ElementTree as ET

import pytest

from knowngood.domain.issue import CPU_PATH
from knowngood.domain.verdicts.verdict import Cell, Verdict
from knowngood.share.exports.badge_api import (
    Badge,
    WatchListStanding,
    badge_of,
    badge_svg,
    list_badge,
    shields_endpoint,
    unmeasured_badge,
    watch_list_standing,
)
from tests.share.exports.given import GPU_CLASS, HOSTILE, cell, inferred

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("verdict", list(Verdict))
def test_the_endpoint_has_the_keys_that_shields_knows_and_no_other(verdict: Verdict) -> None:
    told = json.loads(shields_endpoint(badge_of(cell(verdict), "2.7.0", is_stale=False)))
    assert set(told) == {"schemaVersion", "label", "message", "color", "cacheSeconds"}
    assert told["schemaVersion"] == 1
    assert told["label"] == "toy-1 (cpu-x86_64)"
    assert told["message"].endswith(" on 2.7.0")
    assert isinstance(told["cacheSeconds"], int)


def test_only_a_measured_pass_passes_and_old_evidence_says_so() -> None:
    said = {verdict: badge_of(cell(verdict), "2.7.0", is_stale=False) for verdict in Verdict}
    passing = said[Verdict.NOT_AFFECTED]
    assert [badge for badge in said.values() if "pass" in badge.message or badge.color == passing.color] == [passing]
    assert badge_of(cell(Verdict.NOT_AFFECTED), "2.7.0", is_stale=True).message == "passes on 2.7.0 (old)"
    assert unmeasured_badge("toy-1") == Badge("toy-1", "not run", said[Verdict.NOT_RUN].color)


def test_what_is_inferred_says_so() -> None:
    found = inferred(Verdict.NOT_AFFECTED)
    assert badge_of(found, "2.7.0", is_stale=False).message == "passes on 2.7.0 (inferred)"
    assert badge_of(found, "2.7.0", is_stale=True).message == "passes on 2.7.0 (inferred, old)"


def test_an_issue_of_the_cpu_path_is_not_said_to_be_impossible_on_a_gpu() -> None:
    found = cell(Verdict.NOT_APPLICABLE, hardware=GPU_CLASS, reason=CPU_PATH)
    assert badge_of(found, "2.7.0", is_stale=False).message == "concerns the CPU path"
    assert badge_of(cell(Verdict.NOT_APPLICABLE), "2.7.0", is_stale=False).message == "does not apply on 2.7.0"


@pytest.mark.parametrize(
    ("row", "count"),
    [
        ([inferred(Verdict.NOT_AFFECTED), cell(Verdict.NOT_AFFECTED)], 1),
        ([inferred(Verdict.AFFECTED), cell(Verdict.AFFECTED)], 0),
        ([inferred(Verdict.AFFECTED), cell(Verdict.NOT_AFFECTED)], 1),
        ([cell(Verdict.AFFECTED), inferred(Verdict.NOT_AFFECTED)], 0),
        ([inferred(Verdict.NOT_AFFECTED), cell(Verdict.NOT_RUN)], 0),
    ],
    ids=["a pass takes all of them", "one measured failure is enough", "it fails by inference", "it fails", "unknown"],
)
def test_a_list_counts_what_its_answers_would_not_be_without_inference(row: list[Cell], count: int) -> None:
    assert watch_list_standing([row], is_stale=False).inferred == count


def test_the_picture_says_what_it_shows_to_those_who_do_not_see_it() -> None:
    svg = ET.fromstring(badge_svg(Badge("toy-1", "fails on 2.7.0", "#b3261e")))  # noqa: S314 - we wrote it
    assert svg.get("aria-label") == svg.findtext(f"{SVG}title") == "toy-1: fails on 2.7.0"
    assert [text.text for text in svg.iter(f"{SVG}text")] == ["toy-1", "fails on 2.7.0"]
    widths = [int(box.get("width", "0")) for box in svg.iter(f"{SVG}rect")]
    assert sum(widths) == int(svg.get("width", "0"))


def test_hostile_texts_are_text_and_are_cut() -> None:
    svg = ET.fromstring(badge_svg(Badge(HOSTILE, "<script>" * 20, "#fff")))  # noqa: S314 - we wrote it
    assert {element.tag.removeprefix(SVG) for element in svg.iter()} == {"svg", "title", "rect", "g", "text"}
    assert all(len(text.text or "") <= 60 for text in svg.iter(f"{SVG}text"))


@pytest.mark.parametrize(
    ("rows", "standing"),
    [
        ([[Verdict.NOT_AFFECTED], [Verdict.AFFECTED]], WatchListStanding(1, 1, 0)),
        ([[Verdict.FLAKY], [Verdict.DIFFERENT_FAILURE]], WatchListStanding(2, 0, 0)),
        ([[Verdict.INCONCLUSIVE], [Verdict.NOT_RUN], [Verdict.NO_BUILD]], WatchListStanding(0, 0, 3)),
        ([[Verdict.NOT_APPLICABLE]], WatchListStanding()),
        ([[Verdict.NOT_AFFECTED, Verdict.NOT_RUN]], WatchListStanding(0, 0, 1)),
        ([[Verdict.NOT_RUN, Verdict.AFFECTED]], WatchListStanding(1, 0, 0)),
        ([[Verdict.NOT_APPLICABLE, Verdict.NOT_AFFECTED]], WatchListStanding(0, 1, 0)),
        ([], WatchListStanding()),
    ],
)
def test_of_the_classes_of_an_issue_the_worst_counts(rows: list[list[Verdict]], standing: WatchListStanding) -> None:
    assert watch_list_standing([[cell(verdict) for verdict in row] for row in rows], is_stale=False) == standing


@pytest.mark.parametrize(
    ("standing", "message"),
    [
        (WatchListStanding(0, 3, 0), "all 3 pass on 2.7.0"),
        (WatchListStanding(0, 3, 0, is_stale=True), "all 3 pass on 2.7.0 (old)"),
        (WatchListStanding(0, 3, 0, inferred=2), "all 3 pass on 2.7.0 (2 inferred)"),
        (WatchListStanding(1, 1, 0, is_stale=True, inferred=1), "1 of 2 fail on 2.7.0 (1 inferred, old)"),
        (WatchListStanding(0, 2, 1), "2 of 3 pass, 1 unknown on 2.7.0"),
        (WatchListStanding(1, 1, 1), "1 of 3 fail, 1 unknown on 2.7.0"),
        (WatchListStanding(2, 1, 0), "2 of 3 fail on 2.7.0"),
        (WatchListStanding(), "nothing to watch on 2.7.0"),
    ],
)
def test_a_list_is_green_only_where_all_of_it_is_known_to_pass(standing: WatchListStanding, message: str) -> None:
    told = list_badge("team", standing, "2.7.0", "cpu-x86_64")
    assert (told.label, told.message) == ("team (cpu-x86_64)", message)
    green = badge_of(cell(Verdict.NOT_AFFECTED), "2.7.0", is_stale=False).color
    assert (told.color == green) == message.startswith("all")
