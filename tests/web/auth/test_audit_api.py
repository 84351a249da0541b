"""The audit log: for administrators, whole, in pages."""

import pytest
from starlette.testclient import TestClient

from knowngood.domain.access import Actor, Scope
from knowngood.domain.verdicts.voids import VoidSpan
from knowngood.store import audit_log
from knowngood.store.engine import Engine, unit_of_work
from knowngood.store.evidence.voids import void_results
from tests.make import NOON
from tests.web.asking import bearer, client_of
from tests.web.given import make_token
from tests.web.signed_in import signed_in

AUDIT = "/api/v1/audit"


def noted(engine: Engine, count: int) -> None:
    with unit_of_work(engine) as s:
        for n in range(count):
            audit_log.note(s, Actor("lead", "0123456789ab"), "watch_list.save", f"list-{n}", NOON, version=n, owner="")


@pytest.fixture
def boss(own_engine: Engine) -> TestClient:
    return signed_in(own_engine, Scope.ADMIN, name="boss")


def test_it_says_who_changed_what(boss: TestClient, own_engine: Engine) -> None:
    noted(own_engine, 1)
    first, *earlier = boss.get(AUDIT).json()["entries"]
    assert (first["actor"], first["action"], first["subject"]) == ("lead", "watch_list.save", "list-0")
    assert first["data"] == {"version": 0, "owner": ""}
    assert [one["action"] for one in earlier] == ["session.open", "token.create"]


def test_a_long_log_comes_in_pages_that_leave_nothing_out(boss: TestClient, own_engine: Engine) -> None:
    noted(own_engine, 105)
    first = [one["id"] for one in boss.get(AUDIT).json()["entries"]]
    second = [one["id"] for one in boss.get(f"{AUDIT}?before={first[-1]}").json()["entries"]]
    assert (len(first), len(second)) == (100, 7)
    assert [*first, *second] == sorted({*first, *second}, reverse=True)


def test_only_administrators_see_it(own_engine: Engine, boss: TestClient) -> None:
    assert client_of(own_engine).get(AUDIT).status_code == 401
    triage = make_token(own_engine, Scope.TRIAGE, Scope.SUBMIT, name="ada")
    assert client_of(own_engine).get(AUDIT, headers=bearer(triage)).status_code == 403
    response = boss.get(AUDIT)
    assert (response.status_code, response.headers["cache-control"]) == (200, "no-store")
    assert "etag" not in response.headers


def test_the_page_is_gone_and_names_this_address(boss: TestClient) -> None:
    answer = boss.get("/audit?before=3")
    assert answer.status_code == 410
    assert AUDIT in answer.text


def test_an_entry_holds_whatever_was_noted(boss: TestClient, own_engine: Engine) -> None:
    with unit_of_work(own_engine) as s:
        void_results(s, VoidSpan("", "0123456789ab", None, NOON), "it overheats", by=Actor("lead"), now=NOON)
        audit_log.note(s, Actor("lead"), "x", "y", NOON, odd=[{"a": [1]}], none=None)
    odd, void = boss.get(AUDIT).json()["entries"][:2]
    assert odd["data"] == {"odd": [{"a": [1]}], "none": None}
    assert void["data"]["span"]["clock"] == "measured"
