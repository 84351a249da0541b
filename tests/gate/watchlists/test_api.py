"""Watch lists over HTTP: anybody reads them, their owner changes them, the pages say what they watch."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from knowngood.domain.access import Scope
from knowngood.domain.issue_selectors import Watch, WatchListContent
from knowngood.store.audit_log import load_audit
from knowngood.store.engine import Engine, reading
from knowngood.web.urls import MATRIX
from tests.fixtures.databases import CountStatements
from tests.make import HARDWARE
from tests.web import given
from tests.web.asking import bearer, client_of, values_of
from tests.web.given import make_token

ADDRESS = "/api/v1/watchlists/mine"


@pytest.fixture
def own(own_engine: Engine) -> TestClient:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    return client_of(own_engine)


@pytest.fixture
def mine(own_engine: Engine) -> dict[str, str]:
    return bearer(make_token(own_engine, Scope.TRIAGE, name="ada"))


def put(client: TestClient, headers: dict[str, str], **change: Any) -> Any:
    return client.put(ADDRESS, json=change or {"issues": ["fla-160"]}, headers=headers)


def test_a_list_that_was_put_is_there_for_everybody(own: TestClient, mine: dict[str, str]) -> None:
    change = {
        "description": "What we compile",
        "issues": ["fla-160", "pytorch/pytorch#151290"],
        "components": ["Dynamo"],
        "packages": ["xformers"],
        "severity": "critical",
        "hardware": [HARDWARE],
    }
    response = put(own, mine, **change)
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    expected = {
        "name": "mine",
        "owner": "ada",
        "version": 1,
        "changed_at": "2026-11-21T15:00:00Z",
        "changed_by": "ada",
        **change,
        "url": "/watchlists/mine",
    }
    assert response.json() == own.get(ADDRESS).json() == expected
    assert own.get("/api/v1/watchlists").json() == {"watchlists": [expected]}


def test_a_change_is_seen_at_once_and_the_old_version_can_be_asked_for(own: TestClient, mine: dict[str, str]) -> None:
    put(own, mine)
    tags = {address: own.get(address).headers["etag"] for address in (ADDRESS, "/watchlists", "/watchlists/mine")}
    assert put(own, mine, components=["Dynamo"]).json()["version"] == 2
    for address, tag in tags.items():
        assert own.get(address, headers={"If-None-Match": tag}).status_code == 200
    assert own.get(f"{ADDRESS}?version=1").json()["issues"] == ["fla-160"]
    assert own.get(ADDRESS).json()["components"] == ["Dynamo"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"issues": ["fla-16"]}, "fla-160"),
        ({"components": ["Dynamite"]}, "no component"),
        ({"severity": "awful"}, "severity"),
        ({"issues": []}, "watches nothing"),
        ({"issues": ["fla-160"], "hardware": ["tpu"]}, "no hardware class"),
        ({"issues": ["fla-160"], "description": "a\nb"}, "one line"),
        ({"issues": ["fla-160"], "lists": ["other"]}, "lists"),
        ({"issues": "fla-160"}, "issues"),
        ({"issues": ["x"] * 2001}, "issues"),
        ({"issues": ["x" * 201]}, "issues"),
        ({"issues": ["a\x00b"]}, "NUL"),
        ({"issues": ["fla-160"], "version": -1}, "version"),
        ({"issues": ["fla-160"], "version": 10**12}, "version"),
    ],
)
def test_a_list_that_means_nothing_is_told_so(
    own: TestClient, mine: dict[str, str], change: dict[str, Any], said: str
) -> None:
    response = put(own, mine, **change)
    assert response.status_code == 422
    assert said in response.json()["detail"]
    assert own.get(ADDRESS).status_code == 404


@pytest.mark.parametrize("name", ["Mine", "a%20b", "x" * 65, "a%0Ab"])
def test_a_name_that_cannot_be_is_told_so(own: TestClient, mine: dict[str, str], name: str) -> None:
    response = own.put(f"/api/v1/watchlists/{name}", json={"issues": ["fla-160"]}, headers=mine)
    assert response.status_code == 422
    assert "no name for a watch list" in response.json()["detail"]


def test_what_is_no_json_is_told_so(own: TestClient, mine: dict[str, str]) -> None:
    for body in (b"{", b"[]", b"\xff", b'{"issues": [' + b"[" * 1000):
        response = own.put(ADDRESS, content=body, headers={**mine, "Content-Type": "application/json"})
        assert response.status_code in {400, 422}
        assert own.get(ADDRESS).status_code == 404


def test_a_list_belongs_to_its_owner_and_to_administrators(
    own: TestClient, own_engine: Engine, mine: dict[str, str]
) -> None:
    put(own, mine)
    other = bearer(make_token(own_engine, Scope.TRIAGE, name="other"))
    admin = bearer(make_token(own_engine, Scope.ADMIN, name="admin"))
    for response in (put(own, other), own.delete(ADDRESS, headers=other)):
        assert (response.status_code, "belongs to ada" in response.json()["detail"]) == (403, True)
    changed = put(own, admin, components=["Dynamo"]).json()
    assert (changed["owner"], changed["changed_by"]) == ("ada", "admin")
    assert own.delete(ADDRESS, headers=admin).status_code == 204


def test_a_removed_list_is_gone_and_the_nearest_is_named(own: TestClient, mine: dict[str, str]) -> None:
    put(own, mine)
    missing = own.get("/api/v1/watchlists/min").json()
    assert missing["suggestions"] == ["/watchlists/mine"]
    response = own.delete(ADDRESS, headers=mine)
    assert (response.status_code, response.content) == (204, b"")
    assert own.get(ADDRESS).status_code == 404
    assert own.get(f"{ADDRESS}?version=1").status_code == 200
    assert own.delete(ADDRESS, headers=mine).status_code == 404


def test_a_change_made_for_another_version_is_a_conflict(own: TestClient, mine: dict[str, str]) -> None:
    put(own, mine)
    assert put(own, mine, components=["Dynamo"], version=0).status_code == 409
    assert put(own, mine, components=["Dynamo"], version=2).status_code == 409
    assert own.delete(f"{ADDRESS}?version=2", headers=mine).status_code == 409
    assert put(own, mine, components=["Dynamo"], version=1).json()["version"] == 2


def test_of_two_who_make_one_list_at_once_one_has_it(own: TestClient, own_engine: Engine) -> None:
    tokens = [bearer(make_token(own_engine, Scope.TRIAGE, name=f"team-{n}")) for n in range(4)]
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(put, own, token) for token in tokens]
    statuses = sorted(one.result().status_code for one in asked)
    assert statuses == [200, 403, 403, 403]
    assert own.get(ADDRESS).json()["version"] == 1


def test_every_change_is_in_the_audit_log_under_its_token(
    own: TestClient, own_engine: Engine, mine: dict[str, str]
) -> None:
    put(own, mine)
    own.delete(ADDRESS, headers=mine)
    with reading(own_engine) as s:
        rows = load_audit(s, 2)
    assert [(row.actor, row.action, row.subject) for row in rows] == [
        ("ada", "watch_list.remove", "mine"),
        ("ada", "watch_list.save", "mine"),
    ]
    assert {row.token for row in rows} == {mine["Authorization"].split("_")[1]}


# -- pages -------------------------------------------------------------------------------------------------------------


def test_the_pages_say_what_is_watched(client: TestClient) -> None:
    ((watch_list, _),) = values_of(client, "/watchlists")["page"]
    assert watch_list.name == "vision-team"
    values = values_of(client, "/watchlists/vision-team")
    assert [issue.id for issue in values["watched"]] == ["fla-160", "pytorch-151290"]
    assert values["contents"] == (("Issues", "pytorch-151290"), ("Components", "Dynamo"), ("Hardware", HARDWARE))
    assert values["matrix_address"] == f"{MATRIX}?issues=fla-160%2Cpytorch-151290"
    assert "knowngood gate --watch vision-team --server http://testserver" in client.get("/watchlists/vision-team").text


def test_an_empty_notebook_says_how_to_make_a_list(own: TestClient) -> None:
    assert "knowngood watch add" in own.get("/watchlists").text


def test_a_list_whose_issue_left_the_catalogue_says_so(
    own: TestClient, own_engine: Engine, mine: dict[str, str]
) -> None:
    put(own, mine)
    given.save(own_engine, [given.MASK], given.BUILDS)
    values = values_of(own, "/watchlists/mine")
    assert (values["watched"], values["matrix_address"]) == ((), "")
    assert 'no issue is called "fla-160"' in values["remarks"][0]


def test_what_a_person_wrote_comes_back_as_text(own: TestClient, own_engine: Engine) -> None:
    said = "<img src=x onerror=alert(1)>"
    given.watch(own_engine, "mine", WatchListContent(Watch(issues=("fla-160",)), (), said))
    for address in ("/watchlists", "/watchlists/mine"):
        assert "<img src=x" not in own.get(address).text
        assert "&lt;img" in own.get(address).text


@pytest.mark.parametrize(("address", "queries"), [("/watchlists", 2), ("/watchlists/vision-team", 3)])
def test_each_page_takes_a_known_number_of_queries(
    client: TestClient, notebook: Engine, count_statements: CountStatements, address: str, queries: int
) -> None:
    with count_statements(notebook) as said:
        assert client.get(address).status_code == 200
    assert len(said) == queries, said
