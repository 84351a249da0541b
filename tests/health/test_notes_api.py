"""Triage: what people say of a cell shows everywhere, and a voided cell passes nothing."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from knowngood.domain.access import Scope
from knowngood.store.audit_log import load_audit
from knowngood.store.engine import Engine, reading
from tests.fixtures.databases import StoreWith
from tests.make import HARDWARE, NOON
from tests.web import given
from tests.web.asking import bearer, client_state
from tests.web.given import BAD, GOOD, MASK, Asked, make_token

CELL = f"/api/v1/cells/{MASK.id}/{GOOD.id}"


def _measured(engine: Engine) -> None:
    given.save(engine, given.ISSUES, given.BUILDS)
    given.run(engine, Asked([GOOD], NOON, issues=[MASK]))


@pytest.fixture
def own_engine(store_with: StoreWith) -> Engine:
    return store_with(_measured)


@pytest.fixture
def judge(own_engine: Engine) -> dict[str, str]:
    return bearer(make_token(own_engine, Scope.TRIAGE, name="ada"))


def say(client: TestClient, headers: dict[str, str], kind: str, reason: str = "the host overheats", **more: Any) -> Any:
    return client.post(f"{CELL}/notes", json={"kind": kind, "reason": reason, **more}, headers=headers)


def test_a_note_is_told_with_who_wrote_it(own: TestClient, judge: dict[str, str]) -> None:
    response = say(own, judge, "dispute")
    note = {
        "hardware": HARDWARE,
        "kind": "dispute",
        "reason": "the host overheats",
        "by": "ada",
        "at": "2026-11-21T15:00:00Z",
    }
    assert (response.status_code, response.json()) == (201, note)
    assert own.get(f"{CELL}/notes").json() == {"issue": MASK.id, "build": GOOD.id, "notes": [note]}


def test_the_cells_page_shows_what_people_say_as_text(own: TestClient, judge: dict[str, str]) -> None:
    say(own, judge, "dispute", "<b>not here</b>")
    text = own.get(f"/cells/{MASK.id}/{GOOD.id}").text
    assert "&lt;b&gt;not here&lt;/b&gt;" in text
    assert "disputed" in text
    assert "有异议" in own.get(f"/cells/{MASK.id}/{GOOD.id}?lang=zh").text


def test_a_voided_cell_reads_inconclusive_everywhere_until_it_is_restored(
    own: TestClient, judge: dict[str, str]
) -> None:
    def seen() -> set[str]:
        matrix = own.get(f"/api/v1/matrix?issues={MASK.id}&builds={GOOD.id}").json()["cells"]
        issue = own.get(f"/api/v1/issues/{MASK.id}").json()["cells"]
        return {own.get(CELL).json()["verdict"], *(cell["verdict"] for cell in (*matrix, *issue))}

    assert seen() == {"not_affected"}
    say(own, judge, "void")
    assert seen() == {"inconclusive"}
    assert own.get(CELL).json()["reason"] == "voided by ada: the host overheats"
    assert "voided by ada: the host overheats" in own.get(f"/cells/{MASK.id}/{GOOD.id}").text
    say(own, judge, "restore", "a new fan")
    assert seen() == {"not_affected"}


def test_the_gate_does_not_pass_on_a_voided_cell(own: TestClient, judge: dict[str, str]) -> None:
    question = {"build": GOOD.id, "issues": [MASK.id], "hardware": [HARDWARE]}
    assert own.get("/api/v1/gate", params=question).json()["decision"] == "pass"
    say(own, judge, "void")
    client_state(own).knowledge._look_at = 0.0  # a fifth of a second is not waited for
    answer = own.get("/api/v1/gate", params=question).json()
    assert answer["decision"] == "insufficient_evidence"
    assert "voided by ada: the host overheats" in str(answer)


@pytest.mark.parametrize(
    ("kind", "reason", "more", "said"),
    [
        ("delete", "so", {}, "kind"),
        ("void", "", {}, "reason"),
        ("void", " ", {}, "say why"),
        ("void", "a\nb", {}, "one line"),
        ("void", "a\x00b", {}, "NUL"),
        ("void", "so", {"hardware": "tpu"}, "hardware"),
        ("void", "so", {"hardware": "cuda-sm_90"}, "never measured"),
        ("restore", "so", {}, "not voided"),
        ("void", "so", {"by": "somebody else"}, "by"),
    ],
)
def test_a_note_that_means_nothing_is_told_so(
    own: TestClient, judge: dict[str, str], kind: str, reason: str, more: dict[str, Any], said: str
) -> None:
    response = say(own, judge, kind, reason, **more)
    assert response.status_code == 422
    assert said in response.json()["detail"]
    assert own.get(f"{CELL}/notes").json()["notes"] == []


def test_a_cell_that_is_not_there_has_no_notes(own: TestClient, judge: dict[str, str]) -> None:
    for address in (f"/api/v1/cells/nothing/{GOOD.id}/notes", f"/api/v1/cells/{MASK.id}/torch-9.9/notes"):
        assert own.get(address).status_code == 404
        assert own.post(address, json={"kind": "void", "reason": "so"}, headers=judge).status_code == 404
    unmeasured = f"/api/v1/cells/{MASK.id}/{BAD.id}/notes"
    assert own.get(unmeasured).json()["notes"] == []
    assert own.post(unmeasured, json={"kind": "void", "reason": "so"}, headers=judge).status_code == 422


@pytest.mark.parametrize(("scope", "status"), [(Scope.READ, 403), (Scope.SUBMIT, 403), (Scope.ADMIN, 201)])
def test_only_who_may_judge_is_listened_to(own: TestClient, own_engine: Engine, scope: Scope, status: int) -> None:
    assert say(own, bearer(make_token(own_engine, scope)), "annotate").status_code == status


def test_every_note_is_in_the_audit_log(own: TestClient, own_engine: Engine, judge: dict[str, str]) -> None:
    say(own, judge, "void")
    say(own, judge, "restore", "a new fan")
    with reading(own_engine) as s:
        rows = load_audit(s, 2)
    assert [(row.actor, row.action, row.data["reason"]) for row in rows] == [
        ("ada", "cell.restore", "a new fan"),
        ("ada", "cell.void", "the host overheats"),
    ]
