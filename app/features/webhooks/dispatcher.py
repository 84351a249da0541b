"""Tells webhooks what changed: looks for changes that are complete, writes down what is to be sent, and sends it.

It runs beside the server and the dispatcher; of several one works at a time, by a lease. All that it knows is in the
store, so it may die at any moment: what was sent and not marked is sent once more under the same id, never not at all.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from uuid import uuid4

import structlog

from knowngood.app.domain.errors import BadRequest, Unreadable
from knowngood.app.domain.issue import Issue
from knowngood.app.domain.issue_selectors import names_of, watched_issues
from knowngood.app.domain.verdicts.changes import Change, changes_of, only
from knowngood.app.domain.webhook import Delivery, DeliveryResponse, Webhook
from knowngood.app.features.exports.service import links_at
from knowngood.app.features.webhooks.http_client import SafeHttpClient
from knowngood.app.features.webhooks.signing import change_message, signed_headers, trial_message
from knowngood.app.features.webhooks.store import (
    DueDelivery,
    enqueue,
    find_webhook,
    load_due,
    load_due_one,
    load_webhooks,
    mark_seen,
    record_answer,
)
from knowngood.app.store.engine import Engine, Session, reading, unit_of_work
from knowngood.app.store.evidence.changes import load_earlier, load_news_of_causes
from knowngood.app.store.jobs.job_queue import give_lease_back, take_lease
from knowngood.app.store.queries import load_issues, load_last_event
from knowngood.app.store.watch_lists import load_watch_list

WEBHOOK_LEASE = "courier"
"""The name of the lease that makes a dispatcher the only one."""

_LEASE_S = 90.0  # longer than one round of sending takes at most: _AT_ONCE deliveries, _SENDERS at a time
_AT_ONCE, _SENDERS = 16, 4
_FAR_BEHIND = 500  # events; so seldom is written down how far it looked where there was nothing to tell

logger = structlog.get_logger(__name__)


@dataclass(frozen=True)
class WebhookDispatcher:
    """`base` is the address of this server as others reach it (empty: addresses are told without their host)."""

    engine: Engine
    clock: Callable[[], datetime]
    http_client: SafeHttpClient = field(default_factory=SafeHttpClient)
    base: str = ""
    poll_s: float = 2.0
    holder: str = field(default_factory=lambda: f"courier-{uuid4().hex[:12]}")

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Work in a thread while something else is done."""
        stop = threading.Event()
        thread = threading.Thread(target=self._keep_going, args=(stop,), name="courier", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(1.0)  # one that waits for a receiver is left: what it sends now is sent again

    def _keep_going(self, stop: threading.Event) -> None:
        while not stop.wait(self.poll_s):
            try:
                self.step()
            except Exception as error:  # noqa: BLE001 - the outer loop of this thread: the next round may do better
                logger.warning("webhooks could not be served", error=f"{type(error).__name__}: {error}")

    def step(self) -> int:
        """One round: what is complete is written down, what is due is sent. How many deliveries were sent.

        Where there is nothing to do it costs a query or two and writes nothing.
        """
        if not self._has_work():
            return 0
        with unit_of_work(self.engine) as s:
            if not take_lease(s, WEBHOOK_LEASE, self.holder, self.clock(), _LEASE_S):
                return 0
        try:
            self._write_down()
            return self._send_due()
        finally:
            with unit_of_work(self.engine) as s:
                give_lease_back(s, WEBHOOK_LEASE, self.holder)

    def _has_work(self) -> bool:
        with reading(self.engine) as s:
            if load_due(s, self.clock(), 1):
                return True
            hooks = load_webhooks(s)
            if not hooks:
                return False
            seen, last = min(hook.seen for hook in hooks), load_last_event(s)
            return last - seen > _FAR_BEHIND or bool(load_news_of_causes(s, seen, last))

    def _write_down(self) -> None:
        """Everything that came to its end since the last time, for each webhook, in one transaction."""
        with unit_of_work(self.engine) as s:
            last = load_last_event(s)
            issues = {issue.id: issue for issue in load_issues(s)}
            told: dict[int, tuple[Change, ...]] = {}
            for hook in load_webhooks(s):
                if hook.seen not in told:
                    news = load_news_of_causes(s, hook.seen, last)
                    told[hook.seen] = changes_of(news, load_earlier(s, news))
                for change in reversed(_watched(s, hook, told[hook.seen], issues)):
                    enqueue(s, hook.id, change.key, self._message(change, hook), self.clock())
                mark_seen(s, hook.id, last)

    def _message(self, change: Change, hook: Webhook) -> str:
        query = f"?watch={hook.watch}" if hook.watch else ""
        return change_message(change, links_at(self.base), watch=hook.watch, address=f"{self.base}/changes{query}")

    def _send_due(self) -> int:
        with reading(self.engine) as s:
            due = load_due(s, self.clock(), _AT_ONCE)
        if due:
            with ThreadPoolExecutor(_SENDERS, thread_name_prefix="webhook") as senders:
                list(senders.map(self._send, due))
        return len(due)

    def _send(self, due: DueDelivery, *, is_last: bool = False) -> tuple[Delivery, DeliveryResponse]:
        body = due.delivery.body.encode()
        headers = signed_headers(due.secret, due.delivery.id, self.clock(), body)
        answer = self.http_client.post(due.url, {**headers, "User-Agent": "KnownGood-Webhook/1"}, body)
        with unit_of_work(self.engine) as s:
            after = record_answer(s, due.delivery.id, answer, self.clock(), is_last=is_last)
        logger.info("webhook sent", delivery=after.id, webhook=after.webhook, state=after.state, said=answer.said)
        return after, answer

    def try_out(self, webhook: str) -> tuple[Delivery, DeliveryResponse]:
        """Send a message that says it is a test, once. Raises UnknownWebhook."""
        now = self.clock()
        with unit_of_work(self.engine) as s:
            hook = find_webhook(s, webhook)
            cause = f"test {uuid4().hex}"
            # Not due before it is sent from here, so that no dispatcher at work sends it too.
            made = enqueue(s, hook.id, cause, trial_message(now, hook.id), now, wait_s=_LEASE_S)
            due = load_due_one(s, made.id)
        return self._send(due, is_last=True)


def _watched(s: Session, hook: Webhook, changes: tuple[Change, ...], issues: Mapping[str, Issue]) -> tuple[Change, ...]:
    """The part of the changes that the webhook is told of; nothing where its watch list is gone or names nothing we
    have.
    """
    if not hook.watch:
        return changes
    try:
        watch_list = load_watch_list(s, hook.watch)
        if watch_list is None:
            return ()
        content = watch_list.content
        watched, _ = watched_issues(content.watch, issues, names_of(issues))
    except (BadRequest, Unreadable) as error:
        logger.warning("a watch list cannot be read any more", webhook=hook.id, watch=hook.watch, reason=str(error))
        return ()
    return only(changes, issues={one.id for one in watched}, hardware=content.hardware)
