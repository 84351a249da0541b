"""Notes on cells: a voided one reads inconclusive everywhere, and no evidence is ever removed."""

import pytest

from knowngood.domain.access import Actor
from knowngood.domain.errors import BadRequest
from knowngood.domain.message import english
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Cell, CellKey, Verdict, WorkaroundVerdict
from knowngood.domain.verdicts.voids import Note, NoteKind
from knowngood.store import queries
from knowngood.store.audit_log import load_audit
from knowngood.store.catalogue import save_catalogue
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.evidence.cells import load_notes
from knowngood.store.evidence.notes import add_note
from knowngood.store.maintenance import reclassify
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.store.given import given_results, given_run

KEY = CellKey("toy-1", make_build().id, HARDWARE)
LEAD = Actor("lead", "0123456789ab")


@pytest.fixture(autouse=True)
def _measured(engine: Engine) -> None:
    given_run(engine)
    given_results(engine, Outcome.MATCH)


def say(engine: Engine, kind: NoteKind, reason: str = "the host overheats", key: CellKey = KEY) -> Note:
    with unit_of_work(engine) as s:
        return add_note(s, key, kind, reason, by=LEAD, now=NOON)


def cell(engine: Engine) -> Cell:
    with reading(engine) as s:
        (found,) = queries.load_cells(s)
    return found


def test_a_voided_cell_is_inconclusive_and_says_who_voided_it_and_why(engine: Engine) -> None:
    before = cell(engine)
    assert before.verdict is Verdict.AFFECTED
    say(engine, NoteKind.VOID)
    after = cell(engine)
    assert (after.verdict, english(after.reason)) == (Verdict.INCONCLUSIVE, "voided by lead: the host overheats")
    assert {finding.verdict for finding in after.workarounds.values()} == {WorkaroundVerdict.UNVERIFIED}
    assert (after.attempts, after.evidence, after.measured_at) == (before.attempts, before.evidence, before.measured_at)


def test_restoring_gives_back_what_the_evidence_says(engine: Engine) -> None:
    before = cell(engine)
    say(engine, NoteKind.VOID)
    say(engine, NoteKind.RESTORE, "a new fan")
    assert cell(engine) == before


def test_new_evidence_and_a_reclassification_leave_a_cell_voided(engine: Engine) -> None:
    say(engine, NoteKind.VOID)
    given_run(engine, repeat=2)
    given_results(engine, Outcome.MATCH)
    with unit_of_work(engine) as s:
        assert reclassify(s, NOON) == ()
    voided = cell(engine)
    assert (voided.verdict, english(voided.reason)) == (Verdict.INCONCLUSIVE, "voided by lead: the host overheats")
    assert voided.attempts == {"match": 3}


def test_no_evidence_goes_when_a_cell_is_voided(engine: Engine) -> None:
    with reading(engine) as s:
        before = queries.load_attempts(s, KEY.issue, KEY.build, KEY.hardware)
    say(engine, NoteKind.VOID)
    with reading(engine) as s:
        assert queries.load_attempts(s, KEY.issue, KEY.build, KEY.hardware) == before


@pytest.mark.parametrize("kind", [NoteKind.ANNOTATE, NoteKind.DISPUTE])
def test_other_notes_change_no_verdict(engine: Engine, kind: NoteKind) -> None:
    before = cell(engine)
    say(engine, kind)
    assert cell(engine) == before


def test_notes_are_told_in_the_order_they_were_written_in(engine: Engine) -> None:
    for kind in (NoteKind.DISPUTE, NoteKind.VOID, NoteKind.RESTORE, NoteKind.ANNOTATE, NoteKind.VOID):
        say(engine, kind, f"because of {kind}")
    with reading(engine) as s:
        said = load_notes(s, [KEY])[KEY]
    assert [note.kind for note in said] == ["dispute", "void", "restore", "annotate", "void"]
    assert said[0] == Note(KEY.issue, KEY.build, KEY.hardware, NoteKind.DISPUTE, "because of dispute", "lead", NOON)


@pytest.mark.parametrize(
    ("kinds", "reason", "key", "sentence"),
    [
        pytest.param([NoteKind.VOID], " ", KEY, "say why", id="no reason"),
        pytest.param([NoteKind.VOID], "a\x00b", KEY, "one line", id="what no database takes"),
        pytest.param([NoteKind.VOID], "x" * 1001, KEY, "at most 1000", id="too long"),
        pytest.param([NoteKind.VOID] * 2, "so", KEY, "voided already", id="voided twice"),
        pytest.param([NoteKind.RESTORE], "so", KEY, "not voided", id="nothing to restore"),
        pytest.param([NoteKind.VOID], "so", CellKey("toy-1", KEY.build, "cuda-sm_90"), "never measured", id="no cell"),
    ],
)
def test_a_note_that_means_nothing_is_refused(
    engine: Engine, kinds: list[NoteKind], reason: str, key: CellKey, sentence: str
) -> None:
    *before, last = kinds
    for kind in before:
        say(engine, kind)
    with pytest.raises(BadRequest, match=sentence):
        say(engine, last, reason, key)


def test_every_note_is_in_the_audit_log_and_a_voided_cell_is_news(engine: Engine) -> None:
    say(engine, NoteKind.VOID)
    with reading(engine) as s:
        (row,) = load_audit(s)
        told = [event for event in queries.load_events(s, 0, None, 1000) if event.kind == "cell_changed"]
    assert (row.actor, row.action, row.subject) == ("lead", "cell.void", f"toy-1 on {KEY.build} ({HARDWARE})")
    assert row.data == {"reason": "the host overheats"}
    assert told[-1].data["after"] == "inconclusive"


def test_a_cell_of_a_changed_catalogue_stays_voided(engine: Engine) -> None:
    say(engine, NoteKind.VOID)
    with unit_of_work(engine) as s:
        save_catalogue(s, [make_issue(title="better words")], [make_build()], NOON)
    assert cell(engine).verdict is Verdict.INCONCLUSIVE
