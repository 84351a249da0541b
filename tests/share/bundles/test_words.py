"""What people say of results goes with a bundle: notes on cells, and voids."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from knowngood.domain.access import Actor
from knowngood.domain.errors import BadBundle
from knowngood.domain.verdicts.verdict import CellKey, Verdict
from knowngood.domain.verdicts.voids import Note, NoteKind, Void, VoidSpan
from knowngood.share import bundle as bundles_format
from knowngood.share.store import export_bundle, take_in_bundle
from knowngood.store.engine import Engine, connect, reading, unit_of_work
from knowngood.store.evidence.notes import add_note, load_all_notes
from knowngood.store.evidence.voids import load_voids, unvoid_results, void_results
from knowngood.store.queries import load_cells
from knowngood.store.records import ExportSelection, ImportReport
from tests.fixtures.databases import NewStore
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.store.given import MACHINE, given_catalogue, given_results, given_run

ISSUE, BUILD = make_issue(), make_build()
KEY = CellKey(ISSUE.id, BUILD.id, HARDWARE)
ADA, BOB = Actor("ada"), Actor("bob")
LATER = NOON + timedelta(days=1)
ALWAYS = VoidSpan(MACHINE.digest, "", None, LATER)


@pytest.fixture
def here(engine: Engine) -> Engine:
    """A store with one measured cell, on which somebody said something."""
    given_run(engine, [ISSUE], [BUILD])
    given_results(engine)
    with unit_of_work(engine) as s:
        add_note(s, KEY, NoteKind.ANNOTATE, "seen on another host too", by=ADA, now=NOON)
        add_note(s, KEY, NoteKind.VOID, "the host overheats", by=ADA, now=NOON)
    return engine


@pytest.fixture
def there(new_store: NewStore) -> Engine:
    engine = connect(new_store())
    given_catalogue(engine, [ISSUE], [BUILD])
    return engine


def exported(engine: Engine, path: Path) -> Path:
    with reading(engine) as s, path.open("wb") as out:
        export_bundle(s, out, now=NOON, origin="here")
    return path


def take_in(engine: Engine, path: Path, *, vouched: bool = False) -> ImportReport:
    return take_in_bundle(engine, path, LATER, by=BOB, vouched=vouched)


def verdict(engine: Engine) -> Verdict:
    with reading(engine) as s:
        (cell,) = load_cells(s)
    return cell.verdict


def notes(engine: Engine) -> tuple[Note, ...]:
    with reading(engine) as s:
        return load_all_notes(s, ExportSelection())


def voids(engine: Engine) -> list[Void]:
    with reading(engine) as s:
        return [replace(void, id=0) for void in load_voids(s)]


def test_notes_come_with_a_bundle_and_a_second_time_change_nothing(here: Engine, there: Engine, tmp_path: Path) -> None:
    bundle = exported(here, tmp_path / "results.jsonl.gz")
    assert take_in(there, bundle).notes == 2
    assert notes(there) == notes(here)
    assert verdict(there) is Verdict.INCONCLUSIVE  # voided there as it is here
    assert take_in(there, bundle).notes == 0
    with unit_of_work(here) as s:
        add_note(s, KEY, NoteKind.RESTORE, "it was the fan", by=ADA, now=LATER)
    assert take_in(there, exported(here, tmp_path / "newer.jsonl.gz")).notes == 1
    assert notes(there) == notes(here)
    assert verdict(there) is Verdict.AFFECTED


def test_voids_come_with_a_bundle_cover_what_is_there_and_end_as_they_ended(
    here: Engine, there: Engine, tmp_path: Path
) -> None:
    with unit_of_work(here) as s:
        add_note(s, KEY, NoteKind.RESTORE, "it was the fan", by=ADA, now=NOON)
    take_in(there, exported(here, tmp_path / "before.jsonl.gz"))
    with unit_of_work(here) as s:
        void_results(s, ALWAYS, "it overheats", by=ADA, now=LATER)
    bundle = exported(here, tmp_path / "voided.jsonl.gz")
    assert take_in(there, bundle).notes == 1
    assert voids(there) == voids(here)
    assert verdict(there) is verdict(here) is Verdict.NOT_RUN
    assert take_in(there, bundle).notes == 0
    with unit_of_work(here) as s:
        unvoid_results(s, 1, "it does not", by=ADA, now=LATER)
    assert take_in(there, exported(here, tmp_path / "ended.jsonl.gz")).notes == 1
    assert [(void.ended_by, void.ended_reason) for void in voids(there)] == [("bob", "it does not")]
    assert verdict(there) is verdict(here) is Verdict.AFFECTED


def test_who_sends_a_bundle_over_the_network_says_nothing_of_cells(here: Engine, there: Engine, tmp_path: Path) -> None:
    assert take_in(there, exported(here, tmp_path / "results.jsonl.gz"), vouched=True).notes == 0
    assert notes(there) == ()
    assert verdict(there) is Verdict.AFFECTED


@pytest.mark.parametrize(
    ("note", "sentence"),
    [
        (Note("x" * 101, BUILD.id, HARDWARE, NoteKind.ANNOTATE, "r", "ada", NOON), "is no issue of a note"),
        (Note(ISSUE.id, BUILD.id, "h\n", NoteKind.ANNOTATE, "r", "ada", NOON), "is no hardware of a note"),
        (Note(*KEY, NoteKind.ANNOTATE, "two\nlines", "ada", NOON), "one line"),
        (Note(*KEY, NoteKind.ANNOTATE, "", "ada", NOON), "say why"),
    ],
)
def test_a_note_that_no_store_could_hold_refuses_the_whole_bundle(
    there: Engine, tmp_path: Path, note: Note, sentence: str
) -> None:
    path = tmp_path / "forged.jsonl.gz"
    with path.open("wb") as out:
        bundles_format.write_bundle(out, bundles_format.BundleHeader(NOON, "lab 7", notes=(note,)), [MACHINE])
    with pytest.raises(BadBundle, match=sentence):
        take_in(there, path)
    assert notes(there) == ()
