"""Keeping watch lists in a browser: who may, what is refused, and that nothing typed is lost."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from knowngood.app.domain.access import Scope
from knowngood.app.domain.issue_selectors import Watch
from knowngood.app.domain.watch_list import WatchListContent
from knowngood.app.features.watchlists.edit_page import WatchListFormPage
from knowngood.app.features.watchlists.page import WatchListPage, WatchListsPage
from knowngood.app.store.audit_log import load_audit
from knowngood.app.store.engine import Engine, reading
from tests.fixtures.databases import StoreWith
from tests.make import HARDWARE
from tests.web import given
from tests.web.asking import bearer, client_of, shown
from tests.web.given import make_token
from tests.web.signed_in import HERE, form_word, send, signed_in

NEW, EDIT, REMOVE = "/watchlists/~new", "/watchlists/mine/edit", "/watchlists/mine/remove"


def _with_issues(engine: Engine) -> None:
    given.save(engine, given.ISSUES, given.BUILDS)


@pytest.fixture
def engine_with_issues(store_with: StoreWith) -> Engine:
    return store_with(_with_issues)


@pytest.fixture
def ada(engine_with_issues: Engine) -> TestClient:
    return signed_in(engine_with_issues, Scope.TRIAGE)


def make(client: TestClient, **fields: Any) -> Any:
    return send(client, NEW, **{"name": "mine", "version": "0", "issues": ["fla-160"], **fields})


def kept(client: TestClient) -> Any:
    return client.get("/api/v1/watchlists/mine").json()


def test_a_list_is_made_changed_and_removed_in_a_browser(ada: TestClient, engine_with_issues: Engine) -> None:
    made = make(
        ada,
        description="What we compile",
        more_issues="pytorch/pytorch#151290, pytorch-154771\r\n",
        components=["Dynamo", "Inductor C++"],
        packages="torchvision xformers",
        severity="critical",
        hardware=[HARDWARE],
    )
    assert (made.status_code, made.headers["location"], made.headers["cache-control"]) == (
        303,
        "/watchlists/mine",
        "no-store",
    )
    told = kept(ada)
    assert (told["owner"], told["version"], told["description"]) == ("ada", 1, "What we compile")
    assert told["issues"] == ["fla-160", "pytorch/pytorch#151290", "pytorch-154771"]
    assert (told["components"], told["packages"]) == (["Dynamo", "Inductor C++"], ["torchvision", "xformers"])
    assert (told["severity"], told["hardware"]) == ("critical", [HARDWARE])
    page = shown(ada, EDIT, WatchListFormPage)
    assert [box.value for group in page.groups for box in group.boxes if box.is_ticked] == ["fla-160", "pytorch-154771"]
    assert (page.draft.more_issues, page.draft.packages) == ("pytorch/pytorch#151290", "torchvision\nxformers")
    changed = send(ada, EDIT, version="1", components=["Dynamo"])
    assert changed.status_code == 303
    assert (kept(ada)["version"], kept(ada)["issues"], kept(ada)["components"]) == (2, [], ["Dynamo"])
    removed = send(ada, REMOVE, EDIT, version="2", sure="yes")
    assert (removed.status_code, removed.headers["location"]) == (303, "/watchlists")
    assert ada.get("/watchlists/mine").status_code == 404
    with reading(engine_with_issues) as s:
        actions = [(row.actor, row.action) for row in load_audit(s, 3)]
    assert actions == [("ada", "watch_list.remove"), ("ada", "watch_list.save"), ("ada", "watch_list.save")]


def test_what_was_not_changed_is_sent_back_as_it_was(ada: TestClient) -> None:
    make(ada, more_issues="pytorch/pytorch#151290")
    page = shown(ada, EDIT, WatchListFormPage)
    draft = page.draft
    send(ada, EDIT, version="1", issues=list(draft.issues), more_issues=draft.more_issues, packages=draft.packages)
    assert kept(ada)["version"] == 1


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"name": "Mine"}, 422, "no name for a watch list"),
        ({"name": ""}, 422, "no name for a watch list"),
        ({"name": "~new"}, 422, "no name for a watch list"),
        ({"issues": [], "packages": " , "}, 422, "watches nothing"),
        ({"more_issues": "fla-16"}, 422, "fla-160"),
        ({"components": ["Dynamite"]}, 422, "no component"),
        ({"severity": "awful"}, 422, "severity"),
        ({"hardware": ["tpu"]}, 422, "no hardware class"),
        ({"description": "a\nb"}, 422, "one line"),
        ({"version": "7"}, 409, "look at it again"),
    ],
)
def test_what_cannot_be_kept_is_told_and_nothing_typed_is_lost(
    ada: TestClient, fields: dict[str, Any], status: int, said: str
) -> None:
    response = make(ada, **{"packages": "my-package", **fields})
    assert response.status_code == status
    page = vars(response)["context"]["page"]
    assert isinstance(page, WatchListFormPage)
    assert said in page.problem
    assert fields.get("packages", "my-package") in response.text
    assert page.draft.issues == tuple(fields.get("issues", ["fla-160"]))
    assert ada.get("/watchlists/mine").status_code == 404


def test_a_list_that_somebody_changed_meanwhile_is_a_conflict_and_not_overwritten(ada: TestClient) -> None:
    make(ada)
    assert send(ada, EDIT, version="1", components=["Dynamo"]).status_code == 303
    late = send(ada, EDIT, version="1", issues=["pytorch-154771"])
    assert late.status_code == 409
    assert "is at version 2, not at 1 any more" in late.text
    assert kept(ada)["components"] == ["Dynamo"]
    assert send(ada, REMOVE, EDIT, version="1", sure="yes").status_code == 409
    assert kept(ada)["version"] == 2


def test_a_list_is_not_removed_by_a_slip(ada: TestClient) -> None:
    make(ada)
    response = send(ada, REMOVE, EDIT, version="1")
    assert (response.status_code, "you mean it" in response.text) == (422, True)
    assert kept(ada)["version"] == 1


def test_a_list_of_another_is_theirs_unless_one_is_an_administrator(
    ada: TestClient, engine_with_issues: Engine
) -> None:
    make(ada)
    bob = signed_in(engine_with_issues, Scope.TRIAGE, name="bob")
    assert bob.get(EDIT).status_code == 403
    for address, fields in ((EDIT, {"issues": ["fla-160"]}), (REMOVE, {"sure": "yes"})):
        assert send(bob, address, NEW, version="1", **fields).status_code == 403
    assert shown(bob, "/watchlists/mine", WatchListPage).edit_address == ""
    boss = signed_in(engine_with_issues, Scope.ADMIN, name="boss")
    assert shown(boss, "/watchlists/mine", WatchListPage).edit_address == EDIT
    assert send(boss, EDIT, version="1", components=["Dynamo"]).status_code == 303
    assert (kept(ada)["owner"], kept(ada)["changed_by"]) == ("ada", "boss")


def test_the_way_to_the_form_is_shown_to_those_who_may_go_it(ada: TestClient, engine_with_issues: Engine) -> None:
    make(ada)
    assert shown(ada, "/watchlists", WatchListsPage).new_address == NEW
    assert shown(ada, "/watchlists/mine", WatchListPage).edit_address == EDIT
    assert shown(ada, "/watchlists/mine?version=1", WatchListPage).edit_address == EDIT
    send(ada, EDIT, version="1", components=["Dynamo"])
    assert shown(ada, "/watchlists/mine?version=1", WatchListPage).edit_address == ""
    for other in (client_of(engine_with_issues), signed_in(engine_with_issues, Scope.READ, name="reader")):
        assert shown(other, "/watchlists", WatchListsPage).new_address == ""
        assert shown(other, "/watchlists/mine", WatchListPage).edit_address == ""


def test_whoever_is_not_signed_in_is_led_to_the_door_and_a_reader_is_told(engine_with_issues: Engine) -> None:
    nobody = client_of(engine_with_issues)
    led = nobody.get(NEW)
    assert (led.status_code, led.headers["location"]) == (303, "/sign-in?to=%2Fwatchlists%2F~new")
    reader = signed_in(engine_with_issues, Scope.READ, name="reader")
    assert reader.get(NEW).status_code == 403


@pytest.mark.parametrize("address", [NEW, EDIT, REMOVE])
def test_a_form_that_another_site_sends_changes_nothing(
    ada: TestClient, engine_with_issues: Engine, address: str
) -> None:
    make(ada)
    fields = {"name": "other", "version": "1", "components": "Dynamo", "sure": "yes"}
    word = form_word(ada, NEW)
    elsewhere = {"Origin": "https://evil.example"}
    other = form_word(signed_in(engine_with_issues, Scope.TRIAGE, name="bob"), NEW)
    for data, headers in (
        ({**fields, "form_token": word}, elsewhere),
        ({**fields, "form_token": word}, {}),
        ({**fields, "form_token": ""}, HERE),
        (fields, HERE),
        ({**fields, "form_token": other}, HERE),
    ):
        assert ada.post(address, data=data, headers=headers).status_code == 403
    token = bearer(make_token(engine_with_issues, Scope.ADMIN, name="program"))
    assert client_of(engine_with_issues).post(address, data=fields, headers={**HERE, **token}).status_code == 403
    assert (kept(ada)["version"], ada.get("/watchlists/other").status_code) == (1, 404)


def test_no_copy_of_a_form_is_kept_or_shown_to_another(ada: TestClient, engine_with_issues: Engine) -> None:
    make(ada)
    for address in (NEW, EDIT):
        response = ada.get(address)
        assert response.headers["cache-control"] == "no-store"
        assert "etag" not in response.headers
    boss = signed_in(engine_with_issues, Scope.ADMIN, name="boss")
    assert form_word(ada, EDIT) != form_word(boss, EDIT)


def test_what_is_named_by_a_list_and_is_here_no_more_can_be_seen_and_taken_out(
    ada: TestClient, engine_with_issues: Engine
) -> None:
    make(ada, more_issues="pytorch-151290")
    given.save(engine_with_issues, [given.DYNAMO], given.BUILDS)
    page = shown(ada, EDIT, WatchListFormPage)
    assert page.draft.more_issues == "pytorch-151290"
    refused = send(ada, EDIT, version="1", issues=["fla-160"], more_issues="pytorch-151290")
    assert refused.status_code == 422
    assert send(ada, EDIT, version="1", issues=["fla-160"]).status_code == 303


def test_what_a_person_wrote_comes_back_as_text(ada: TestClient, engine_with_issues: Engine) -> None:
    said = '"><img src=x onerror=alert(1)>'
    given.watch(engine_with_issues, "mine", WatchListContent(Watch(issues=("fla-160",)), (), said), by="ada")
    text = ada.get(EDIT).text
    assert "<img" not in text
    assert "&lt;img" in text
    response = make(ada, name=said, packages=f"</textarea>{said}")
    assert "<img" not in response.text
    assert "&lt;/textarea&gt;" in response.text


def test_as_many_issues_as_a_list_may_hold_can_be_ticked(ada: TestClient) -> None:
    assert make(ada, issues=["fla-160"] * 2_000).status_code == 303


def test_a_form_of_more_fields_than_anybody_ticks_is_refused(ada: TestClient) -> None:
    response = make(ada, issues=["fla-160"] * 3000)
    assert (response.status_code, "more than 2,500 fields" in response.text) == (422, True)


def test_the_form_speaks_chinese(ada: TestClient) -> None:
    assert "新建关注清单" in ada.get(f"{NEW}?lang=zh").text
