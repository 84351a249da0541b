"""Notes of people on cells. They are only added; a voided cell is derived as such wherever it is read."""

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa

from knowngood.domain.access import Actor
from knowngood.domain.errors import BadRequest
from knowngood.domain.verdicts.verdict import CellKey
from knowngood.domain.verdicts.voids import Note, NoteKind, checked_reason, standing_void
from knowngood.store import audit_log
from knowngood.store.engine import Session
from knowngood.store.evidence.cells import announce, load_notes, rederive, touch
from knowngood.store.records import ExportSelection
from knowngood.store.statements import among, is_of, place_of
from knowngood.store.tables import cells, notes


def add_note(s: Session, key: CellKey, kind: NoteKind, reason: str, *, by: Actor, now: datetime) -> Note:
    """Say something of a cell that has evidence; voiding and restoring derive it anew. Raises BadRequest."""
    words = checked_reason(reason)
    touch(s)
    _refuse_meaningless(s, key, kind)
    made = Note(*key, kind, words, by.name, now)
    s.execute(sa.insert(notes).values(**vars(made)))
    subject = f"{key.issue} on {key.build} ({key.hardware})"
    audit_log.note(s, by, f"cell.{kind}", subject, now, reason=words)
    announce(s, "cell_noted", now, issue=key.issue, build=key.build, hardware=key.hardware, note=kind, by=by.name)
    if kind in {NoteKind.VOID, NoteKind.RESTORE}:
        rederive(s, [key], now)
    return made


def load_all_notes(s: Session, selection: ExportSelection) -> tuple[Note, ...]:
    """The notes on the selected cells, the oldest first."""
    words = (selection.issues, selection.builds, selection.hardware)
    which = among(*zip(place_of(notes), words, strict=True))
    keys = s.execute(sa.select(*place_of(notes)).where(*which).distinct()).all()
    by_cell = load_notes(s, [CellKey(*key) for key in keys])
    return tuple(sorted((note for cell_notes in by_cell.values() for note in cell_notes), key=lambda note: note.at))


def take_in_notes(s: Session, came: Sequence[Note], now: datetime) -> int:
    """Add notes of another store, but for those that are here; derive the cells that they void or restore. Return how
    many were new.
    """
    here = load_notes(s, list({note.key for note in came}))
    new = [note for note in came if note not in here[note.key]]
    if new:
        touch(s)
        s.execute(sa.insert(notes), [vars(note) for note in new])
        rederive(s, {note.key for note in new}, now)
    return len(new)


def _refuse_meaningless(s: Session, key: CellKey, kind: NoteKind) -> None:
    if s.execute(sa.select(cells.c.issue).where(*is_of(key, cells))).first() is None:
        raise BadRequest(f"{key.issue} was never measured on {key.build} ({key.hardware}): there is nothing to say of")
    is_void = standing_void(load_notes(s, [key])[key]) is not None
    if kind is NoteKind.VOID and is_void:
        raise BadRequest("this cell is voided already; restore it first to void it for another reason")
    if kind is NoteKind.RESTORE and not is_void:
        raise BadRequest("this cell is not voided: there is nothing to restore")
