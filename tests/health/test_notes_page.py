"""Saying something of a cell in a browser."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from knowngood.domain.access import Scope
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.voids import NoteKind
from knowngood.store.engine import Engine
from knowngood.web.urls import cell_address, notes_address
from tests.fixtures.databases import StoreWith
from tests.make import HARDWARE, NOON
from tests.web import given
from tests.web.asking import client_of, values_of
from tests.web.given import BAD, MASK, NEW, Asked
from tests.web.signed_in import HERE, send, signed_in

CELL = cell_address(MASK.id, BAD.id, HARDWARE)
NOTES = notes_address(MASK.id, BAD.id, HARDWARE)


def _measured(engine: Engine) -> None:
    given.save(engine, given.ISSUES, given.BUILDS)
    given.run(engine, Asked([BAD], NOON, issues=[MASK]), lambda _, __: Outcome.PASS)


@pytest.fixture
def own_engine(store_with: StoreWith) -> Engine:
    return store_with(_measured)


@pytest.fixture
def ada(own_engine: Engine) -> TestClient:
    return signed_in(own_engine, Scope.TRIAGE)


def say(client: TestClient, kind: str, reason: str = "the host overheats") -> Any:
    return send(client, NOTES, kind=kind, reason=reason)


def verdict(client: TestClient) -> str:
    told: str = client.get(f"/api/v1{CELL}").json()["verdict"]
    return told


def test_a_cell_is_disputed_voided_and_restored_in_a_browser(ada: TestClient) -> None:
    before = verdict(ada)
    for kind, after in (("dispute", before), ("void", "inconclusive"), ("restore", before)):
        response = say(ada, kind)
        assert (response.status_code, response.headers["location"]) == (303, NOTES)
        assert verdict(ada) == after
    notes = values_of(ada, NOTES)["notes"]
    assert [note.kind for note in notes] == ["dispute", "void", "restore"]
    assert {note.actor for note in notes} == {"ada"}
    assert "the host overheats" in ada.get(NOTES).text


def test_only_what_makes_sense_is_offered(ada: TestClient) -> None:
    assert NoteKind.RESTORE not in values_of(ada, NOTES)["meanings"]
    say(ada, "void")
    assert NoteKind.VOID not in values_of(ada, NOTES)["meanings"]
    refused = say(ada, "void", "again")
    assert (refused.status_code, "voided already" in refused.text) == (422, True)


@pytest.mark.parametrize(
    ("kind", "reason", "said"),
    [
        ("void", "", "say why in one line"),
        ("void", "a\nb", "say why in one line"),
        ("void", "x" * 1001, "say why in one line"),
        ("praise", "so", "choose what to say"),
        ("", "so", "choose what to say"),
        ("restore", "so", "not voided"),
    ],
)
def test_what_cannot_be_said_is_told_and_what_was_typed_is_kept(
    ada: TestClient, kind: str, reason: str, said: str
) -> None:
    response = say(ada, kind, reason)
    assert response.status_code == 422
    values = vars(response)["context"]
    assert said in values["problem"]
    assert values["reason"] == reason
    assert values["notes"] == ()


def test_whoever_may_not_judge_reads_and_is_shown_the_door(ada: TestClient, own_engine: Engine) -> None:
    say(ada, "dispute")
    nobody = client_of(own_engine)
    values = values_of(nobody, NOTES)
    assert (len(values["notes"]), values["meanings"]) == (1, {})
    assert "/sign-in?to=" in nobody.get(NOTES).text
    assert nobody.post(NOTES, data={"kind": "void", "reason": "so"}, headers=HERE).status_code == 403
    reader = signed_in(own_engine, Scope.READ, name="reader")
    assert values_of(reader, NOTES)["meanings"] == {}
    assert send(reader, NOTES, "/sign-in", kind="void", reason="so").status_code == 403


def test_a_form_that_another_site_sends_changes_nothing(ada: TestClient) -> None:
    response = ada.post(NOTES, data={"kind": "void", "reason": "so"}, headers={"Origin": "https://evil.example"})
    assert response.status_code == 403
    assert (
        ada.post(NOTES, data={"kind": "void", "reason": "so", "form_token": "0" * 64}, headers=HERE).status_code == 403
    )
    assert verdict(ada) == "not_affected"


def test_of_a_cell_that_nobody_measured_there_is_nothing_to_say(ada: TestClient) -> None:
    assert values_of(ada, notes_address(MASK.id, NEW.id, HARDWARE))["meanings"] == {}
    assert ada.get("/cells/nothing-1/torch-2.6.0/notes").status_code == 404


def test_what_a_person_wrote_comes_back_as_text(ada: TestClient) -> None:
    said = '"><script>alert(1)</script>'
    say(ada, "annotate", said)
    assert said not in ada.get(NOTES).text
    assert "&lt;script&gt;" in ada.get(NOTES).text
