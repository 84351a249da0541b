"""What people say of cells. Notes are only added; a voided cell is derived as such wherever it is read."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session

from knowngood.app.domain.access import Actor
from knowngood.app.domain.errors import BadRequest
from knowngood.app.domain.verdicts.notes import Note, NoteKind, standing_void
from knowngood.app.store import audit_log
from knowngood.app.store.evidence.cells import CellKey, announce, load_notes, rederive, touch
from knowngood.app.store.tables import cells, notes

_LONGEST = 1000


def add_note(s: Session, key: CellKey, kind: NoteKind, reason: str, *, by: Actor, now: datetime) -> Note:
    """Say something of a cell that has evidence; voiding and restoring derive it anew. Raises BadRequest."""
    said = reason.strip()
    if not said or len(said) > _LONGEST or not said.isprintable():
        raise BadRequest(f"reason: say why in one line of at most {_LONGEST} characters")
    touch(s)
    _refuse_meaningless(s, key, kind)
    made = Note(key.issue, key.build, key.hardware, kind, said, by.name, now)
    s.execute(sa.insert(notes).values(**vars(made)))
    subject = f"{key.issue} on {key.build} ({key.hardware})"
    audit_log.note(s, by, f"cell.{kind}", subject, now, reason=said)
    announce(s, "cell_noted", now, issue=key.issue, build=key.build, hardware=key.hardware, note=kind, by=by.name)
    if kind in {NoteKind.VOID, NoteKind.RESTORE}:
        rederive(s, [key], now)
    return made


def _refuse_meaningless(s: Session, key: CellKey, kind: NoteKind) -> None:
    where = sa.and_(cells.c.issue == key.issue, cells.c.build == key.build, cells.c.hardware == key.hardware)
    if s.execute(sa.select(cells.c.issue).where(where)).first() is None:
        raise BadRequest(f"{key.issue} was never measured on {key.build} ({key.hardware}): there is nothing to say of")
    is_void = standing_void(load_notes(s, [key])[key]) is not None
    if kind is NoteKind.VOID and is_void:
        raise BadRequest("this cell is voided already; restore it first to void it for another reason")
    if kind is NoteKind.RESTORE and not is_void:
        raise BadRequest("this cell is not voided: there is nothing to restore")
