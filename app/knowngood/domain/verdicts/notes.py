"""Notes of people on a cell: beside the evidence, never instead of it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from knowngood.domain.message import Message, Quoted
from knowngood.domain.verdicts.verdict import Cell, OfCell, Verdict, WorkaroundFinding, WorkaroundVerdict


class NoteKind(StrEnum):
    """`void` makes a cell read inconclusive until `restore`; the other two change nothing but what people read."""

    ANNOTATE = "annotate"
    DISPUTE = "dispute"
    VOID = "void"
    RESTORE = "restore"


@dataclass(frozen=True)
class Note(OfCell):
    """A person's note on the cell (issue, build, hardware); `reason` is in the person's own words."""

    kind: NoteKind
    reason: str
    actor: str
    at: datetime


def standing_void(notes: Iterable[Note]) -> Note | None:
    """The note that voids the cell now; `notes` stand in the order they were written in."""
    changes = [note for note in notes if note.kind in {NoteKind.VOID, NoteKind.RESTORE}]
    return changes[-1] if changes and changes[-1].kind is NoteKind.VOID else None


def voided(cell: Cell, note: Note) -> Cell:
    """The cell as it reads while `note` voids it: no verdict of it or of a workaround is to be relied on.

    Its evidence, attempts and variants stay: what was seen was seen.
    """
    reason = Message("voided", name=note.actor, reason=Quoted(note.reason))
    unverified = {
        name: WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, Message("cell_voided")) for name in cell.workarounds
    }
    return replace(cell, verdict=Verdict.INCONCLUSIVE, reason=reason, workarounds=unverified)
