"""Webhooks: who is told of changes, and when a delivery that failed is tried again. Sending is somebody else's."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from http import HTTPStatus

from knowngood.app.domain.errors import KnownGoodError
from knowngood.app.domain.issue import digest

# As the Standard Webhooks specification proposes: 75 hours and a half in all, so that a weekend is survived.
RETRY_AFTER = tuple(
    timedelta(seconds=seconds) for seconds in (5, 300, 1800, 7200, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600)
)
_LONGEST_ASKED = timedelta(days=1)
_SPREAD = 0.1


class UnknownWebhook(KnownGoodError):
    """An id that names no webhook, or no delivery, of this store."""


class BadWebhook(KnownGoodError):
    """A webhook that nothing can be sent to, or that would be told nothing."""


class DeliveryState(StrEnum):
    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True)
class Webhook:
    """Where changes are sent. `watch` is the list whose issues it is told of (empty: of all); `seen` is the event up to
    which it was told. `ended` says why nothing is sent any more (empty: it is).
    """

    id: str
    url: str
    watch: str
    created_at: datetime
    created_by: str
    seen: int
    ended_at: datetime | None = None
    ended: str = ""


@dataclass(frozen=True)
class Delivery:
    """One message to one webhook: its id stays the same however often it is sent. `cause` is the change it tells of.

    `next_at` is when it is sent (again), None once it is delivered or given up.
    """

    id: str
    webhook: str
    cause: str
    body: str
    state: DeliveryState
    tries: int
    created_at: datetime
    next_at: datetime | None = None


@dataclass(frozen=True)
class DeliveryResponse:
    """A receiver's response: the status (None: there was no answer), a few words, and how long to wait where it says
    so.
    """

    status: int | None
    said: str
    took_s: float
    retry_after_s: float | None = None

    @property
    def is_success(self) -> bool:
        return self.status is not None and HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    @property
    def is_gone(self) -> bool:
        """The receiver wants nothing more, ever."""
        return self.status == HTTPStatus.GONE


def next_try(delivery: str, tries: int, answer: DeliveryResponse, now: datetime) -> datetime | None:
    """When to send again after `tries` that failed, the last with `answer`; None: it is given up.

    Each delivery has a spread of its own, so that a receiver that comes back is not asked for everything at once.
    """
    if answer.is_gone or tries > len(RETRY_AFTER):
        return None
    wait = RETRY_AFTER[tries - 1] * (1 + _SPREAD * _share(delivery, tries))
    asked = timedelta(seconds=answer.retry_after_s or 0)
    return now + max(wait, min(asked, _LONGEST_ASKED))


def _share(delivery: str, tries: int) -> float:
    """Between 0 and 1, the same for the same delivery and try."""
    return int(digest(f"{delivery} {tries}")[:8], 16) / 0xFFFFFFFF
