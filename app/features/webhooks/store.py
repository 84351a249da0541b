"""Webhooks and what is on its way to them. A delivery is written down before it is sent and marked after it: whoever
dies in between leaves it waiting, and it is sent again under the same id.

A secret is stored as it is, because a signature is made with it: whoever reads the database can sign.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from knowngood.app.domain.access import Actor
from knowngood.app.domain.webhook import (
    BadWebhook,
    Delivery,
    DeliveryResponse,
    DeliveryState,
    UnknownWebhook,
    Webhook,
    next_try,
)
from knowngood.app.features.webhooks.signing import SECRET_BYTES, written_secret
from knowngood.app.store import audit_log
from knowngood.app.store.engine import Session
from knowngood.app.store.evidence.cells import touch
from knowngood.app.store.queries import load_last_event
from knowngood.app.store.tables import deliveries, delivery_tries, watch_lists, webhooks

_KEPT = timedelta(days=90)
_LONGEST_SAID = 300
_TO_SEND = sa.select(deliveries, webhooks.c.url, webhooks.c.secret).join(
    webhooks, webhooks.c.id == deliveries.c.webhook
)
_COLUMNS = [webhooks.c[field.name] for field in fields(Webhook)]


@dataclass(frozen=True)
class DueDelivery:
    """A delivery that is to be sent now, with where to and the secret to sign it with."""

    delivery: Delivery
    url: str
    secret: str


@dataclass(frozen=True)
class Try:
    """One time that a delivery was sent. `status` is None where no answer came."""

    at: datetime
    status: int | None
    said: str
    took_s: float


def add_webhook(s: Session, url: str, watch: str, *, by: Actor, now: datetime) -> tuple[Webhook, str]:
    """The webhook with the only copy of its secret that is ever shown. It is told of what happens from now on.

    `url` was looked at already; raises BadWebhook for a watch list there is not.
    """
    touch(s)
    known = sa.and_(watch_lists.c.name == watch, watch_lists.c.is_present)
    if watch and s.execute(sa.select(watch_lists.c.name).where(known)).first() is None:
        raise BadWebhook(f'no watch list is called "{watch[:80]}" here; `knowngood watch list` shows all')
    made = Webhook(f"wh_{secrets.token_hex(6)}", url, watch, now, by.name, load_last_event(s))
    secret = written_secret(secrets.token_bytes(SECRET_BYTES))
    s.execute(sa.insert(webhooks).values(**vars(made), secret=secret))
    audit_log.note(s, by, "webhook.add", made.id, now, url=url, watch=watch)
    return made, secret


def remove_webhook(s: Session, id_: str, *, by: Actor, now: datetime) -> None:
    """Nothing more is sent; what was stays in its log. Raises UnknownWebhook."""
    touch(s)
    found = find_webhook(s, id_)
    if found.ended_at is not None:
        raise UnknownWebhook(f"{id_} has ended already: {found.ended}")
    _end(s, id_, "removed", now)
    audit_log.note(s, by, "webhook.remove", id_, now, url=found.url)


def load_webhooks(s: Session, *, ended: bool = False) -> tuple[Webhook, ...]:
    """The oldest first; with `ended` also those that nothing is sent to any more."""
    query = sa.select(*_COLUMNS).order_by(webhooks.c.created_at, webhooks.c.id)
    if not ended:
        query = query.where(webhooks.c.ended_at.is_(None))
    return tuple(Webhook(**row) for row in s.execute(query).mappings())


def find_webhook(s: Session, id_: str) -> Webhook:
    """Also one that has ended. Raises UnknownWebhook."""
    row = s.execute(sa.select(*_COLUMNS).where(webhooks.c.id == id_)).mappings().one_or_none()
    if row is None:
        raise UnknownWebhook(f'no webhook is called "{id_[:80]}" here; `knowngood webhook list` shows all')
    return Webhook(**row)


def mark_seen(s: Session, id_: str, until: int) -> None:
    s.execute(sa.update(webhooks).where(webhooks.c.id == id_).values(seen=until))


def enqueue(s: Session, webhook: str, cause: str, body: str, now: datetime, *, wait_s: float = 0) -> Delivery:
    """Write a message down that is to be sent. One cause is told once: whoever does so again gets the first message.

    Messages that came to their end long ago are forgotten.
    """
    known = sa.and_(deliveries.c.webhook == webhook, deliveries.c.cause == cause)
    row = s.execute(sa.select(deliveries).where(known)).mappings().one_or_none()
    if row is not None:
        return _delivery(row)
    s.execute(sa.delete(deliveries).where(deliveries.c.next_at.is_(None), deliveries.c.created_at < now - _KEPT))
    made = Delivery(
        id=f"msg_{secrets.token_hex(12)}",
        webhook=webhook,
        cause=cause,
        body=body,
        state=DeliveryState.WAITING,
        tries=0,
        created_at=now,
        next_at=now + timedelta(seconds=wait_s),
    )
    s.execute(sa.insert(deliveries).values(**vars(made)))
    return made


def load_due(s: Session, now: datetime, limit: int) -> tuple[DueDelivery, ...]:
    """The deliveries that are to be sent by now, the one that waits longest first."""
    query = (
        _TO_SEND.where(deliveries.c.state == DeliveryState.WAITING, deliveries.c.next_at <= now)
        .order_by(deliveries.c.next_at, deliveries.c.id)
        .limit(limit)
    )
    return tuple(_due(dict(row)) for row in s.execute(query).mappings())


def load_due_one(s: Session, delivery: str) -> DueDelivery:
    """One delivery with all that is needed to send it, whether it is time or not. Raises UnknownWebhook."""
    row = s.execute(_TO_SEND.where(deliveries.c.id == delivery)).mappings().one_or_none()
    if row is None:
        raise UnknownWebhook(f'no delivery is called "{delivery[:80]}" here; `knowngood webhook log` shows all')
    return _due(dict(row))


def _due(row: dict[str, Any]) -> DueDelivery:
    url, secret = row.pop("url"), row.pop("secret")
    return DueDelivery(_delivery(row), url, secret)


def _delivery(row: Any) -> Delivery:  # noqa: ANN401 - a row of the driver
    return Delivery(**{**row, "state": DeliveryState(row["state"])})


def record_answer(
    s: Session, delivery: str, answer: DeliveryResponse, now: datetime, *, is_last: bool = False
) -> Delivery:
    """Write down what came back, and when to send again. With `is_last` it is never sent again."""
    before = load_due_one(s, delivery).delivery
    tries = before.tries + 1
    again = None if is_last else next_try(delivery, tries, answer, now)
    if answer.is_success:
        state, again = DeliveryState.DELIVERED, None
    else:
        state = DeliveryState.WAITING if again else DeliveryState.FAILED
    if before.state is not DeliveryState.WAITING:  # another sender was quicker, or its webhook was removed meanwhile
        state, again = (state if answer.is_success else before.state), None
    s.execute(sa.update(deliveries).where(deliveries.c.id == delivery).values(state=state, tries=tries, next_at=again))
    _note_try(s, delivery, answer, now)
    if answer.is_gone:
        _end(s, before.webhook, "its receiver answered 410 Gone", now)
    return load_due_one(s, delivery).delivery


def _note_try(s: Session, delivery: str, answer: DeliveryResponse, now: datetime) -> None:
    last = sa.select(sa.func.max(delivery_tries.c.try_no)).where(delivery_tries.c.delivery == delivery)
    number = (s.execute(last).scalar_one() or 0) + 1
    row = {"delivery": delivery, "try_no": number, "at": now, "status": answer.status, "took_s": answer.took_s}
    s.execute(sa.insert(delivery_tries).values(**row, said=answer.said.replace("\0", "")[:_LONGEST_SAID]))


def send_again(s: Session, delivery: str, *, by: Actor, now: datetime) -> Delivery:
    """Have a delivery sent anew under the id that it has, as if it had never been tried. Raises UnknownWebhook."""
    touch(s)
    before = load_due_one(s, delivery).delivery
    if find_webhook(s, before.webhook).ended_at is not None:
        raise UnknownWebhook(f"{before.webhook} has ended: nothing is sent to it any more")
    anew = {"state": DeliveryState.WAITING, "tries": 0, "next_at": now}
    s.execute(sa.update(deliveries).where(deliveries.c.id == delivery).values(**anew))
    audit_log.note(s, by, "webhook.resend", delivery, now, webhook=before.webhook)
    return load_due_one(s, delivery).delivery


def load_deliveries(
    s: Session, limit: int, *, webhook: str | None = None
) -> tuple[tuple[Delivery, tuple[Try, ...]], ...]:
    """The newest first, each with its tries, the oldest first."""
    query = sa.select(deliveries).order_by(deliveries.c.created_at.desc(), deliveries.c.id).limit(limit)
    if webhook is not None:
        query = query.where(deliveries.c.webhook == webhook)
    found = [_delivery(row) for row in s.execute(query).mappings()]
    tries = _load_tries(s, [one.id for one in found])
    return tuple((one, tries.get(one.id, ())) for one in found)


def _load_tries(s: Session, ids: Sequence[str]) -> dict[str, tuple[Try, ...]]:
    query = sa.select(delivery_tries).where(delivery_tries.c.delivery.in_(ids))
    found: dict[str, tuple[Try, ...]] = {}
    for row in s.execute(query.order_by(delivery_tries.c.delivery, delivery_tries.c.try_no)):
        found[row.delivery] = (*found.get(row.delivery, ()), Try(row.at, row.status, row.said, row.took_s))
    return found


def _end(s: Session, id_: str, why: str, now: datetime) -> None:
    s.execute(sa.update(webhooks).where(webhooks.c.id == id_).values(ended_at=now, ended=why))
    waiting = sa.and_(deliveries.c.webhook == id_, deliveries.c.state == DeliveryState.WAITING)
    s.execute(sa.update(deliveries).where(waiting).values(state=DeliveryState.FAILED, next_at=None))
