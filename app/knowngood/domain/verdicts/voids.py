"""Results of a worker that cannot be trusted: which ones, who said so and why. They are kept, shown, and never counted.

A void is a rule that stands until it is ended: what it covers does not count, whether it was here before or comes in
later, so that sending the same results once more brings nothing back.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from knowngood.domain.errors import BadRequest
from knowngood.domain.message import Message, Quoted
from knowngood.domain.verdicts.verdict import Cell, OfCell, Verdict, WorkaroundFinding, WorkaroundVerdict

LONGEST_REASON = 1000


class UnknownVoid(BadRequest):
    """A number that names no void of this store, or one that was ended before."""


class Clock(StrEnum):
    """Whose time a span is of: the worker's, as it says in each result, or this server's when the result came in."""

    MEASURED = "measured"
    RECEIVED = "received"


@dataclass(frozen=True)
class VoidSpan:
    """The results of a void: of the machine with this digest, of what came through the token with this id, or (both
    given) of that machine through that token; finished (or received, by `clock`) from `since` (None: ever) to `until`,
    both included.
    """

    machine: str
    token: str
    since: datetime | None
    until: datetime
    clock: Clock = Clock.MEASURED

    def covers(self, machine: str, token: str, finished_at: datetime, received_at: datetime | None) -> bool:
        """Whether the span covers a result with these. One without a recorded arrival is in no span of arrivals."""
        at = finished_at if self.clock is Clock.MEASURED else received_at
        is_theirs = (not self.machine or self.machine == machine) and (not self.token or self.token == token)
        return is_theirs and at is not None and (self.since is None or self.since <= at) and at <= self.until


@dataclass(frozen=True)
class Void:
    """Said once, by `actor`. The three last fields say who took it back, when and why; `ended_at` is None while it
    stands.
    """

    id: int
    span: VoidSpan
    reason: str
    actor: str
    at: datetime
    ended_at: datetime | None = None
    ended_by: str = ""
    ended_reason: str = ""


def checked_reason(text: str) -> str:
    """Check a person's reason: one line. Raises BadRequest."""
    reason = text.strip()
    if not reason or len(reason) > LONGEST_REASON or not reason.isprintable():
        raise BadRequest(f"reason: say why in one line of at most {LONGEST_REASON} characters")
    return reason


def checked_span(span: VoidSpan, now: datetime) -> VoidSpan:
    """Check a span. Raises BadRequest for one that covers nobody, everybody, or no time at all."""
    if not span.machine and not span.token:
        raise BadRequest("say whose results: the digest of a machine, a token, or both; nobody means everybody's")
    if span.since is not None and span.since > span.until:
        raise BadRequest(f"from {span.since:%Y-%m-%d %H:%M} to {span.until:%Y-%m-%d %H:%M} UTC is no time at all")
    if span.until > now:
        raise BadRequest(
            f"to {span.until:%Y-%m-%d %H:%M} UTC is still to come; what is yet to be sent is kept out by revoking "
            "the token"
        )
    return span


# -- Notes of people on a cell: beside the evidence, never instead of it -----------------------------------------------


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
