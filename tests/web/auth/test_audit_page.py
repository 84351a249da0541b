"""The audit log: for administrators, whole, in pages."""

import pytest
from starlette.testclient import TestClient

from knowngood.app.domain.access import Actor, Scope
from knowngood.app.domain.verdicts.voids import VoidSpan
from knowngood.app.store import audit_log
from knowngood.app.store.engine import Engine, unit_of_work
from knowngood.app.store.evidence.voids import void_results
from knowngood.app.web.auth.audit_page import SHOWN, AuditPage
from knowngood.app.web.html.i18n import exact
from tests.make import NOON
from tests.web.asking import bearer, client_of, shown
from tests.web.given import make_token
from tests.web.signed_in import signed_in


def noted(engine: Engine, count: int) -> None:
    with unit_of_work(engine) as s:
        for n in range(count):
            audit_log.note(s, Actor("lead", "0123456789ab"), "watch_list.save", f"list-{n}", NOON, version=n, owner="")


@pytest.fixture
def boss(own_engine: Engine) -> TestClient:
    return signed_in(own_engine, Scope.ADMIN, name="boss")


def test_the_page_and_its_twin_tell_who_changed_what(boss: TestClient, own_engine: Engine) -> None:
    noted(own_engine, 1)
    page = shown(boss, "/audit", AuditPage)
    first = page.lines[0]
    assert (first.row.actor, first.row.action, first.row.subject, first.details) == (
        "lead",
        "watch_list.save",
        "list-0",
        "version: 0",
    )
    assert [line.row.action for line in page.lines[1:]] == ["session.open", "token.create"]
    told = boss.get(page.json_address).json()["entries"]
    assert [one["id"] for one in told] == [line.row.id for line in page.lines]
    assert told[0]["data"] == {"version": 0, "owner": ""}


def test_a_long_log_comes_in_pages_that_leave_nothing_out(boss: TestClient, own_engine: Engine) -> None:
    noted(own_engine, SHOWN + 5)
    first = shown(boss, "/audit", AuditPage)
    second = shown(boss, first.older_address, AuditPage)
    ids = [line.row.id for page in (first, second) for line in page.lines]
    assert (len(ids), second.older_address) == (SHOWN + 7, "")
    assert ids == sorted(ids, reverse=True)
    assert len(boss.get(f"/api/v1/audit?before={ids[-2]}").json()["entries"]) == 1


def test_only_administrators_see_it(own_engine: Engine, boss: TestClient) -> None:
    nobody = client_of(own_engine)
    led = nobody.get("/audit?before=3")
    assert (led.status_code, led.headers["location"]) == (303, "/sign-in?to=%2Faudit%3Fbefore%3D3")
    assert nobody.get("/api/v1/audit").status_code == 401
    triage = make_token(own_engine, Scope.TRIAGE, Scope.SUBMIT, name="ada")
    assert nobody.get("/api/v1/audit", headers=bearer(triage)).status_code == 403
    assert nobody.get("/audit", headers=bearer(triage)).status_code == 403
    for address in ("/audit", "/api/v1/audit"):
        response = boss.get(address)
        assert (response.status_code, response.headers["cache-control"]) == (200, "no-store")
        assert "etag" not in response.headers


def test_the_way_there_is_shown_to_administrators_alone(boss: TestClient, own_engine: Engine) -> None:
    assert 'href="/audit"' in boss.get("/sign-in").text
    ada = signed_in(own_engine, Scope.TRIAGE)
    assert 'href="/audit"' not in ada.get("/sign-in").text


def test_what_is_written_in_it_comes_back_as_text(boss: TestClient, own_engine: Engine) -> None:
    with unit_of_work(own_engine) as s:
        audit_log.note(
            s, Actor("lead"), "cell.void", "<img src=x>", NOON, reason="<script>alert(1)</script>", ids=["a", "b"]
        )
    text = boss.get("/audit").text
    assert "<img" not in text
    assert "<script>alert" not in text
    assert "ids: a, b" in text


def test_whatever_an_entry_holds_is_shown(boss: TestClient, own_engine: Engine) -> None:
    """A void writes its span down as parts; the page answered 500 from then on."""
    with unit_of_work(own_engine) as s:
        void_results(s, VoidSpan("", "0123456789ab", None, NOON), "it overheats", by=Actor("lead"), now=NOON)
        audit_log.note(s, Actor("lead"), "x", "y", NOON, odd=[{"a": [1]}], none=None, empty={}, flag=False, number=0)
    span = f"span: token 0123456789ab, clock measured, to {exact(NOON)}"
    assert [line.details for line in shown(boss, "/audit", AuditPage).lines[:2]] == [
        "odd: a 1; flag: False; number: 0",
        f"attempts: 0; cells: 0; changed: 0; reason: it overheats; {span}",
    ]
    assert boss.get("/api/v1/audit").json()["entries"][1]["data"]["span"]["clock"] == "measured"
