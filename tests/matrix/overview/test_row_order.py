"""The order of rows, and their groups in it."""

from dataclasses import replace
from datetime import date

import pytest
from starlette.testclient import TestClient

from knowngood.domain.verdicts.outcome import Outcome
from knowngood.store.engine import Engine
from knowngood.web.urls import MATRIX
from tests.make import NOON, make_issue
from tests.web import given
from tests.web.asking import page_at
from tests.web.given import BAD, DYNAMO, GOOD, ISSUES, MASK, NEW, OLD, SILENT, Asked

SEVERITIES = {issue.id: issue.severity.value for issue in ISSUES}


def groups_of(client: TestClient, sort: str) -> dict[str, list[str]]:
    page = page_at(client, f"{MATRIX}?sort={sort}")
    return {group.label: [row.issue.id for row in group.rows] for group in page.groups}


def test_what_fails_on_the_newest_settled_release_comes_first_wrong_numbers_before_errors(
    own: TestClient, own_engine: Engine
) -> None:
    line = [replace(one, released=date(2024, 1, place)) for place, one in enumerate((OLD, BAD, GOOD), start=1)]
    young = replace(NEW, released=NOON.date())
    known = [replace(issue, reported_on=date(2024, 6, 1)) for issue in (MASK, SILENT, DYNAMO)]
    others = [make_issue(f"toy-{n}", component="Other", reported_on=date(2024, 6, 1)) for n in range(20)]
    given.save(own_engine, [*known, *others], [*line, young])
    fails = {MASK.id, SILENT.id}
    given.run(
        own_engine,
        Asked([line[-1], young], NOON, issues=known),
        lambda spec, arm: (
            Outcome.MATCH if arm.arm == "baseline" and arm.issue in fails and spec.build.id == GOOD.id else Outcome.PASS
        ),
    )
    page = page_at(own, MATRIX)
    assert [one.label for one in page.orders if one.is_chosen] == ["what fails"]
    assert {group.label: [row.issue.id for row in group.rows][:2] for group in page.groups} == {
        "fail on 2.8.0: wrong numbers, no error": [SILENT.id],
        "fail on 2.8.0 with an error": [MASK.id],
        "not known to fail on 2.8.0": [DYNAMO.id, "toy-0"],
    }


def test_by_severity_the_gravest_come_first(client: TestClient) -> None:
    ranks = ["critical", "high", "medium", "low"]
    groups = groups_of(client, "severity")
    assert sorted(groups, key=ranks.index) == list(groups)
    assert all(SEVERITIES[id_] == label for label, ids in groups.items() for id_ in ids)


def test_by_change_the_release_at_which_most_recently_something_came_or_went_is_first(client: TestClient) -> None:
    assert groups_of(client, "changed") == {
        "came or went in 2.8.0": ["pytorch-151290"],
        "no change known": ["fla-160", "pytorch-154771"],
    }


def test_by_id_numbers_count_as_numbers(client: TestClient) -> None:
    assert groups_of(client, "id") == {"all issues": ["fla-160", "pytorch-151290", "pytorch-154771"]}


@pytest.mark.parametrize("sort", ["fails", "component", "severity", "changed", "id"])
def test_the_twin_sorts_by_the_words_of_the_page(client: TestClient, sort: str) -> None:
    rows = [id_ for ids in groups_of(client, sort).values() for id_ in ids]
    asked = {"sort": sort, "hardware": "cpu-x86_64", "fields": "issue", "issues": ",".join(rows)}
    cells = client.get("/api/v1/matrix", params=asked).json()["cells"]
    assert list(dict.fromkeys(cell["issue"] for cell in cells)) == rows

    asked |= {"sort": f"-{sort}", "limit": "1"}
    last = client.get("/api/v1/matrix", params=asked).json()
    assert last["next"]
    never = groups_of(client, "changed").get("no change known", []) if sort == "changed" else []
    assert last["cells"][0]["issue"] in {one for one in rows if one not in never}


@pytest.mark.parametrize("sort", ["severity", "changed", "id"])
def test_the_groups_of_every_order_fold(client: TestClient, sort: str) -> None:
    first = page_at(client, f"{MATRIX}?sort={sort}").groups[0]
    folded = page_at(client, first.fold.address)
    assert folded.groups[0].fold.is_folded
    assert f"sort={sort}" in first.fold.address
    for order in folded.orders:
        assert "fold=" not in order.address


def test_an_order_that_there_is_not_is_refused_with_those_there_are(client: TestClient) -> None:
    answer = client.get(f"{MATRIX}?sort=colour")
    assert answer.status_code == 422
    assert "component" in answer.text
    assert "severity" in answer.text
