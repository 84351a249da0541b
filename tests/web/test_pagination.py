"""Lists of the API: what is asked for is what comes, in parts that miss nothing and repeat nothing."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given as given_values
from hypothesis import strategies as st
from starlette.testclient import TestClient

from knowngood.domain.builds.build import Build
from knowngood.store.engine import Engine
from knowngood.web.urls import MATRIX
from tests.fixtures.databases import CountStatements
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.web import given
from tests.web.asking import answer_at
from tests.web.given import BAD, BUILDS, GOOD, ISSUES, NEW, OLD, Asked

LISTS = {
    "/api/v1/issues": "issues",
    "/api/v1/builds": "builds",
    "/api/v1/runs": "runs",
    "/api/v1/attempts?issue=pytorch-151290": "attempts",
    "/api/v1/matrix": "cells",
}


def with_parameter(address: str, parameter: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}{parameter}"


def parts_of(client: TestClient, address: str, key: str, between: Callable[[], None] = lambda: None) -> list[Any]:
    """All items, part by part, as a program follows `next`."""
    items: list[Any] = []
    following: str | None = address
    while following:
        body = answer_at(client, following)
        items += body[key]
        following = body["next"]
        between()
    return items


@pytest.mark.parametrize(("address", "key"), LISTS.items())
@pytest.mark.parametrize("limit", [3, 1000, *(pytest.param(one, marks=pytest.mark.soak) for one in (1, 2, 7))])
def test_the_parts_of_a_list_are_the_list(client: TestClient, address: str, key: str, limit: int) -> None:
    whole = answer_at(client, address)[key]
    assert parts_of(client, with_parameter(address, f"limit={limit}"), key) == whole
    assert len(answer_at(client, with_parameter(address, f"limit={limit}"))[key]) == min(limit, len(whole))


@pytest.mark.parametrize("address", LISTS)
def test_the_next_part_stands_in_the_header_too(client: TestClient, address: str) -> None:
    response = client.get(with_parameter(address, "limit=1"))
    assert response.headers["link"] == f'<{response.json()["next"]}>; rel="next"'
    last = client.get(with_parameter(address, "limit=1000"))
    assert last.json()["next"] is None
    assert "link" not in last.headers


@pytest.mark.parametrize("address", ["/api/v1/issues", "/api/v1/builds", "/api/v1/matrix"])
def test_what_is_asked_for_whole_is_answered_as_ever(client: TestClient, address: str) -> None:
    assert "next" not in answer_at(client, address)


SORTED = [
    ("/api/v1/issues", "issues", "severity,-title"),
    ("/api/v1/issues", "issues", "-component"),
    ("/api/v1/builds", "builds", "-released"),
    ("/api/v1/builds", "builds", "origin,-id"),
    ("/api/v1/matrix", "cells", "-measured_at"),
    ("/api/v1/matrix", "cells", "measured_at,-build"),
    ("/api/v1/matrix", "cells", "verdict,-issue,hardware"),
]


@pytest.mark.parametrize(("address", "key", "sort"), SORTED)
def test_parts_of_a_sorted_list_are_the_sorted_list(client: TestClient, address: str, key: str, sort: str) -> None:
    whole = answer_at(client, f"{address}?sort={sort}")[key]
    assert parts_of(client, f"{address}?sort={sort}&limit=2", key) == whole
    assert sorted(map(json.dumps, whole)) == sorted(map(json.dumps, answer_at(client, address)[key]))


def test_cells_stand_in_the_order_asked_for_and_unmeasured_ones_last(client: TestClient) -> None:
    newest_first = [cell["measured_at"] for cell in answer_at(client, "/api/v1/matrix?sort=-measured_at")["cells"]]
    oldest_first = [cell["measured_at"] for cell in answer_at(client, "/api/v1/matrix?sort=measured_at")["cells"]]
    measured = [time for time in newest_first if time]
    assert measured == sorted(measured, reverse=True)
    assert oldest_first[: len(measured)] == sorted(measured)
    assert set(newest_first[len(measured) :]) == set(oldest_first[len(measured) :]) == {None}


def test_severities_and_releases_have_their_own_order(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, ISSUES, [make_build("2.10.0+cu128"), make_build("2.9.0+cu128"), OLD])
    assert [one["id"] for one in answer_at(own, "/api/v1/builds")["builds"]] == [
        OLD.id,
        "torch-2.9.0+cu128",
        "torch-2.10.0+cu128",
    ]
    assert [one["id"] for one in answer_at(own, "/api/v1/builds?sort=-id&limit=1")["builds"]] == ["torch-2.10.0+cu128"]


@pytest.mark.parametrize(
    "sort",
    [
        "&sort=-measured_at",
        *(pytest.param(one, marks=pytest.mark.soak) for one in ("", "&sort=-issue", "&sort=verdict")),
    ],
)
def test_what_comes_in_between_two_parts_repeats_nothing_and_hides_nothing(
    own: TestClient, own_engine: Engine, sort: str
) -> None:
    given.save(own_engine, ISSUES, BUILDS)
    given.run(own_engine, Asked([BAD], NOON))
    before = {(cell["issue"], cell["build"]) for cell in answer_at(own, "/api/v1/matrix")["cells"]}
    issues, builds = list(ISSUES), list(BUILDS)

    def more() -> None:
        n = len(issues)
        issues.append(make_issue(f"aaa-{n}", title=f"New {n}", component="Accelerator"))
        issues.append(make_issue(f"zzz-{n}", title=f"New {n}", component="Zoo"))
        builds.append(make_build(f"2.1.{n}+cu121"))
        given.save(own_engine, issues[:12], builds[:12])

    cells = parts_of(own, f"/api/v1/matrix?limit=3{sort}", "cells", more)
    keys = [(cell["issue"], cell["build"]) for cell in cells]
    assert len(keys) == len(set(keys))
    assert before <= set(keys)


def test_runs_that_come_in_between_do_not_move_older_ones(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, ISSUES, BUILDS)
    made = [given.queue(own_engine, Asked([build], NOON)) for build in (OLD, BAD, GOOD)]

    def one_more() -> None:
        given.queue(own_engine, Asked([NEW], NOON + timedelta(hours=1)))

    assert {run["id"] for run in parts_of(own, "/api/v1/runs?limit=1", "runs", one_more)} == set(made)


ISSUE_FILTERS = [
    ("component=Dynamo", {"fla-160"}),
    ("component=Dynamo,Inductor+Triton", {"fla-160", "pytorch-151589"}),
    ("culprit=triton", {"pytorch-151589"}),
    ("device=cuda", {"pytorch-151589"}),
    ("silent=true", {"pytorch-154771"}),
    ("silent=false&device=cpu", {"pytorch-151290", "fla-160"}),
    ("q=bmm+wrong", {"pytorch-154771"}),
    ("severity=critical", set()),
    ("status=bug&q=fla", {"fla-160"}),
    ("", {issue.id for issue in ISSUES}),
]


@pytest.mark.parametrize(("query", "ids"), ISSUE_FILTERS)
def test_issues_are_those_asked_for(client: TestClient, query: str, ids: set[str]) -> None:
    assert {issue["id"] for issue in answer_at(client, f"/api/v1/issues?{query}")["issues"]} == ids


def ids_of(*builds: Build) -> set[str]:
    return {build.id for build in builds}


BUILD_FILTERS = [
    ("torch=%3E%3D2.8", ids_of(GOOD, NEW)),
    ("torch=>=2.7,<2.9&mismatched=false&origin=default", ids_of(BAD, GOOD)),
    ("torch===2.7.1", ids_of(BAD, given.MISMATCHED, given.CPU_ONLY)),
    ("torch===2.7.1+cu126", ids_of(BAD, given.MISMATCHED)),
    ("mismatched=true", ids_of(given.MISMATCHED)),
    ("origin=cpu", ids_of(given.CPU_ONLY)),
    ("python=3.11&torch=<2.6", ids_of(OLD)),
]


@pytest.mark.parametrize(("query", "ids"), BUILD_FILTERS)
def test_builds_are_those_asked_for(client: TestClient, query: str, ids: set[str]) -> None:
    assert {build["id"] for build in answer_at(client, f"/api/v1/builds?{query}")["builds"]} == ids


def test_cells_are_those_asked_for(client: TestClient) -> None:
    whole = answer_at(client, "/api/v1/matrix")["cells"]

    def expect(query: str, wanted: Callable[[Any], bool]) -> None:
        expected = [cell for cell in whole if wanted(cell)]
        assert expected
        assert answer_at(client, f"/api/v1/matrix?{query}")["cells"] == expected

    expect("verdicts=affected,flaky", lambda cell: cell["verdict"] in {"affected", "flaky"})
    expect("verdicts=affected&verdicts=not_run", lambda cell: cell["verdict"] in {"affected", "not_run"})
    expect("stale=true", lambda cell: cell["stale"])
    expect("stale=false", lambda cell: not cell["stale"])
    expect("since=2026-11-21T13:00:00Z", lambda cell: (cell["measured_at"] or "") >= "2026-11-21T13:00:00Z")
    expect("since=2026-11-21", lambda cell: (cell["measured_at"] or "") >= "2026-11-21")
    expect(
        f"hardware={HARDWARE}&verdicts=affected",
        lambda cell: cell["hardware"] == HARDWARE and cell["verdict"] == "affected",
    )


def test_some_cells_come_with_their_issues_and_builds_alone(client: TestClient) -> None:
    for query in ("verdicts=flaky", "limit=1", "since=2026-11-21T14:00:00Z&limit=2"):
        body = answer_at(client, f"/api/v1/matrix?{query}")
        assert {issue["id"] for issue in body["issues"]} == {cell["issue"] for cell in body["cells"]}
        assert {build["id"] for build in body["builds"]} == {cell["build"] for cell in body["cells"]}


ATTEMPT_FILTERS = [
    ("outcome=match", lambda one: one["outcome"] == "match" and one["counted"]),
    (f"builds={BAD.id}", lambda one: one["build"] == BAD.id),
    (
        f"builds={BAD.id},{OLD.id}&outcome=pass",
        lambda one: one["build"] in ids_of(BAD, OLD) and one["outcome"] == "pass",
    ),
    (f"hardware={HARDWARE}", lambda one: one["hardware"] == HARDWARE),
]


@pytest.mark.parametrize(("query", "wanted"), ATTEMPT_FILTERS)
def test_attempts_of_an_issue_are_those_asked_for(
    client: TestClient, query: str, wanted: Callable[[Any], bool]
) -> None:
    address = "/api/v1/attempts?issue=pytorch-151290"
    whole = answer_at(client, address)["attempts"]
    found = answer_at(client, f"{address}&{query}")["attempts"]
    assert found == [one for one in whole if wanted(one)]
    assert found


def test_attempts_stand_newest_first_and_say_what_their_cell_says(client: TestClient) -> None:
    listed = answer_at(client, "/api/v1/attempts?issue=pytorch-151290")["attempts"]
    times = [one["finished_at"] for one in listed]
    assert times == sorted(times, reverse=True)
    cell = answer_at(client, f"/api/v1/cells/pytorch-151290/{BAD.id}")
    same = [{key: one[key] for key in cell["evidence"][0]} for one in listed if one["build"] == BAD.id]
    assert same == cell["evidence"]


@pytest.mark.parametrize(
    ("address", "key", "fields"),
    [
        ("/api/v1/matrix", "cells", ["issue", "build", "verdict"]),
        ("/api/v1/issues", "issues", ["id", "title"]),
        ("/api/v1/builds", "builds", ["torch"]),
        ("/api/v1/runs", "runs", ["state"]),
        ("/api/v1/attempts?issue=fla-160", "attempts", ["outcome", "url"]),
    ],
)
def test_items_have_the_fields_asked_for(client: TestClient, address: str, key: str, fields: list[str]) -> None:
    body = answer_at(client, with_parameter(address, f"fields={','.join(fields)}&limit=3"))
    assert body[key]
    assert {tuple(sorted(item)) for item in body[key]} == {tuple(sorted(fields))}
    assert "next" in body


@pytest.mark.parametrize(
    ("address", "field", "told"),
    [
        ("/api/v1/issues?sort=titel", "sort", "nearest: title"),
        ("/api/v1/issues?sort=title,-title", "sort", "twice"),
        ("/api/v1/issues?fields=id,tittle", "fields", "nearest: title"),
        ("/api/v1/matrix?fields=%25", "fields", "known: issue, build"),
        ("/api/v1/issues?component=Dinamo", "component", "nearest: Dynamo"),
        ("/api/v1/issues?severity=huge", "severity.0", "critical"),
        ("/api/v1/issues?severity=", "severity.0", "critical"),
        ("/api/v1/issues?silent=maybe", "silent", "boolean"),
        ("/api/v1/builds?torch=2.6", "torch", ">=2.6,<2.8"),
        ("/api/v1/builds?origin=cuda", "origin", "no origin"),
        ("/api/v1/builds?python=3.99", "python", "3.11"),
        ("/api/v1/matrix?verdicts=affected,broken", "verdicts.1", "not_affected"),
        ("/api/v1/matrix?since=2099-01-01", "since", "still to come"),
        ("/api/v1/matrix?limit=0", "limit", "greater than or equal to 1"),
        ("/api/v1/matrix?limit=1001", "limit", "less than or equal to 1000"),
        ("/api/v1/matrix?hardwre=cpu-x86_64", "hardwre", "nearest: hardware"),
        ("/api/v1/issues?limit=1&limit=2", "limit", "2 times"),
        ("/api/v1/attempts", "issue", "required"),
        ("/api/v1/issues/fla-160?q=1", "q", "no such parameter"),
        ("/api/v1/matrix?cursor=xx", "cursor", "damaged"),
        ("/api/v1/matrix?cursor=bm9uc2Vuc2U", "cursor", "damaged"),
        ("/api/v1/runs?cursor=W10", "cursor", "another question"),
    ],
)
def test_what_cannot_be_answered_names_the_parameter(client: TestClient, address: str, field: str, told: str) -> None:
    response = client.get(address)
    assert response.status_code == 422
    problem = response.json()
    assert [one["field"] for one in problem["errors"]] == [field]
    assert told in problem["detail"]
    assert problem["detail"].startswith(f"{field}: ")


def test_a_cursor_is_refused_under_another_question(client: TestClient) -> None:
    cursor = answer_at(client, "/api/v1/matrix?limit=1&sort=issue")["next"].rpartition("cursor=")[2]
    for query in ("sort=-issue", "", "sort=issue&verdicts=affected", "sort=issue&columns=minors"):
        problem = client.get(f"/api/v1/matrix?{query}&cursor={cursor}").json()
        assert (problem["status"], problem["errors"][0]["field"]) == (422, "cursor")
    assert client.get(f"/api/v1/builds?cursor={cursor}").status_code == 422
    assert client.get(f"/api/v1/matrix?sort=issue&limit=5&fields=issue&cursor={cursor}").status_code == 200


@given_values(data=st.data())
def test_no_damage_to_a_cursor_is_a_fault_of_the_server(client: TestClient, data: st.DataObject) -> None:
    address, key = data.draw(st.sampled_from(sorted(LISTS.items())))
    path, _, cursor = answer_at(client, with_parameter(address, "limit=1"))["next"].rpartition("cursor=")
    assert key
    at = data.draw(st.integers(0, len(cursor) - 1))
    sign = data.draw(st.sampled_from("ABCDEFabcdef0129-_=%~ "))
    response = client.get(f"{path}cursor={cursor[:at]}{sign}{cursor[at + 1 :]}")
    assert response.status_code in {200, 422}


@pytest.mark.parametrize(
    ("address", "queries"),
    [
        ("/api/v1/matrix?limit=5&sort=-measured_at&fields=issue,verdict", 3),
        ("/api/v1/issues?limit=2&sort=title", 2),
        ("/api/v1/builds?torch=>=2.6", 2),
        ("/api/v1/runs?limit=1", 3),
        (f"/api/v1/attempts?issue=pytorch-151290&builds={BAD.id}", 6),
    ],
)
def test_a_part_takes_no_more_queries_than_the_whole(
    client: TestClient, notebook: Engine, count_statements: CountStatements, address: str, queries: int
) -> None:
    client.get(MATRIX)  # what is known is kept from then on
    with count_statements(notebook) as said:
        answer_at(client, address)
    assert len(said) == queries, said
