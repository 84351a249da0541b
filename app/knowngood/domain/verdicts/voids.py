"""Results of a worker that cannot be trusted: which ones, who said so and why. They are kept, shown, and never counted.

A void is a rule that stands until it is ended: what it covers does not count, whether it was here before or comes in
later, so that sending the same results once more brings nothing back.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from knowngood.domain.errors import BadRequest

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
