"""Webhooks from end to end: a change in the store, a real receiver, and everything that may go wrong between them."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from knowngood.app.domain.access import Actor
from knowngood.app.domain.issue_selectors import Watch
from knowngood.app.domain.measuring.planning import PlanRequest
from knowngood.app.domain.verdicts.outcome import Outcome
from knowngood.app.domain.verdicts.verdict import Verdict
from knowngood.app.domain.watch_list import WatchListContent
from knowngood.app.domain.webhook import DeliveryState, UnknownWebhook, Webhook
from knowngood.app.features.webhooks.dispatcher import WEBHOOK_LEASE, WebhookDispatcher
from knowngood.app.features.webhooks.http_client import SafeHttpClient
from knowngood.app.features.webhooks.store import (
    add_webhook,
    load_deliveries,
    load_webhooks,
    remove_webhook,
    send_again,
)
from knowngood.app.store.engine import Engine, connect, reading, unit_of_work
from knowngood.app.store.jobs.job_queue import take_lease
from knowngood.app.store.watch_lists import ListOwner, remove_watch_list
from tests.fixtures.databases import CountStatements
from tests.given_toys import ROOT
from tests.make import NOON
from tests.waiting import PATIENCE_S, eventually
from tests.web import given
from tests.web.given import BAD, DYNAMO, GOOD, MASK, Asked
from tests.web.receiver import Received, answer, receiving

OPERATOR = Actor("ops")


@dataclass
class Clock:
    now: datetime = NOON + timedelta(hours=1)

    def __call__(self) -> datetime:
        return self.now

    def passes(self, **time_: float) -> None:
        self.now += timedelta(**time_)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def webhook_dispatcher(own_engine: Engine, clock: Clock) -> WebhookDispatcher:
    measured(own_engine, Outcome.PASS)
    return WebhookDispatcher(own_engine, clock, SafeHttpClient(limit_s=PATIENCE_S), base="https://kg.example")


def measured(engine: Engine, outcome: Outcome, *, at: datetime = NOON, builds: Any = (BAD,)) -> str:
    """Two issues are measured (again): a second answer that differs makes them flaky."""
    given.save(engine, given.ISSUES, given.BUILDS)
    asked = Asked(list(builds), at, issues=[MASK, DYNAMO], wanted=PlanRequest(force=True))
    return given.run(engine, asked, lambda _, arm: outcome if arm.arm == "baseline" else Outcome.PASS)


def hook(engine: Engine, url: str, watch: str = "") -> tuple[Webhook, str]:
    with unit_of_work(engine) as s:
        return add_webhook(s, url, watch, by=OPERATOR, now=NOON)


def deliveries(engine: Engine) -> list[tuple[DeliveryState, int]]:
    with reading(engine) as s:
        return [(one.state, len(tries)) for one, tries in load_deliveries(s, 100)]


def told(received: Received) -> list[tuple[str, str, str]]:
    return [(cell["issue"], cell["before"], cell["after"]) for cell in received.message["data"]["cells"]]


def test_what_one_run_turned_is_one_signed_message(
    own_engine: Engine, webhook_dispatcher: WebhookDispatcher, clock: Clock
) -> None:
    with receiving() as receiver:
        made, secret = hook(own_engine, receiver.address)
        run = measured(own_engine, Outcome.MATCH)
        assert webhook_dispatcher.step() == 1
        assert webhook_dispatcher.step() == 0
    (got,) = receiver.received
    assert got.is_signed_with(secret)
    assert not got.is_signed_with(secret.replace(secret[10], "x" if secret[10] != "x" else "y", 1))
    assert got.headers["webhook-timestamp"] == str(int(clock.now.timestamp()))
    assert got.headers["content-type"] == "application/json"
    assert (got.message["type"], got.message["data"]["run"]) == ("verdicts.changed", run)
    assert told(got) == [(DYNAMO.id, "not_affected", "flaky"), (MASK.id, "not_affected", "flaky")]
    assert got.message["data"]["cells"][0]["url"].startswith("https://kg.example/cells/fla-160/")
    assert deliveries(own_engine) == [(DeliveryState.DELIVERED, 1)]
    with reading(own_engine) as s:
        assert [one.id for one in load_webhooks(s)] == [made.id]


def test_first_measurements_and_what_happened_before_it_was_added_are_not_sent(
    own_engine: Engine, webhook_dispatcher: WebhookDispatcher
) -> None:
    measured(own_engine, Outcome.MATCH)
    with receiving() as receiver:
        hook(own_engine, receiver.address)
        measured(own_engine, Outcome.PASS, builds=[GOOD])
        assert webhook_dispatcher.step() == 0
        assert receiver.received == []


def test_a_run_is_told_when_it_is_over_and_not_while_it_goes_on(
    own_engine: Engine, webhook_dispatcher: WebhookDispatcher
) -> None:
    with receiving() as receiver:
        hook(own_engine, receiver.address)
        given.queue(own_engine, Asked([BAD], NOON, issues=[MASK, DYNAMO], wanted=PlanRequest(force=True)))
        spec = given.claim(own_engine, NOON)
        assert spec is not None
        given.begin(own_engine, spec, NOON)
        for arm in spec.arms:
            given.finish(own_engine, spec, arm, Outcome.MATCH if arm.arm == "baseline" else Outcome.PASS, NOON)
            assert webhook_dispatcher.step() == 0
        given.end(own_engine, spec, NOON)
        assert webhook_dispatcher.step() == 1
        assert len(receiver.received[0].message["data"]["cells"]) == 2


def test_an_edit_of_the_catalogue_is_one_message_with_all_it_turned(
    own_engine: Engine, webhook_dispatcher: WebhookDispatcher
) -> None:
    measured(own_engine, Outcome.MATCH, builds=[BAD, GOOD])
    with receiving() as receiver:
        hook(own_engine, receiver.address)
        edited = replace(MASK, signature=replace(MASK.signature, pattern="nothing like it"))
        given.save(own_engine, [edited, *given.ISSUES[1:]], given.BUILDS)
        assert webhook_dispatcher.step() == 1
    data = receiver.received[0].message["data"]
    assert (data["cause"], data["issues"], len(data["cells"])) == ("catalogue", [MASK.id], 2)


def test_a_watch_list_hears_of_its_own_issues_alone_and_of_nothing_once_it_is_gone(
    own_engine: Engine, webhook_dispatcher: WebhookDispatcher
) -> None:
    given.watch(own_engine, "mine", WatchListContent(Watch(components=("Dynamo",))))
    given.watch(own_engine, "gpu", WatchListContent(Watch(components=("Dynamo",)), ("cuda-sm_90",)))
    with receiving() as mine, receiving() as gpu:
        hook(own_engine, mine.address, "mine")
        hook(own_engine, gpu.address, "gpu")
        measured(own_engine, Outcome.MATCH)
        assert webhook_dispatcher.step() == 1
        assert told(mine.received[0]) == [(DYNAMO.id, "not_affected", "flaky")]
        assert mine.received[0].message["data"]["url"] == "https://kg.example/changes?watch=mine"
        with unit_of_work(own_engine) as s:
            remove_watch_list(s, "mine", by=ListOwner(OPERATOR, overrules=True), now=NOON)
        given.save(own_engine, [replace(DYNAMO, silent=True), MASK], given.BUILDS)
        measured(own_engine, Outcome.OTHER_FAILURE)
        webhook_dispatcher.step()
        assert (len(mine.received), len(gpu.received)) == (1, 0)


def test_what_fails_is_sent_again_later_under_the_same_id_and_with_a_new_time(
    own_engine: Engine, webhook_dispatcher: WebhookDispatcher, clock: Clock
) -> None:
    with receiving(answer(500), answer(302, Location="/other"), answer(200)) as receiver:
        _, secret = hook(own_engine, receiver.address)
        measured(own_engine, Outcome.MATCH)
        assert webhook_dispatcher.step() == 1
        assert webhook_dispatcher.step() == 0
        assert deliveries(own_engine) == [(DeliveryState.WAITING, 1)]
        clock.passes(seconds=6)
        assert webhook_dispatcher.step() == 1
        clock.passes(seconds=6)
        assert webhook_dispatcher.step() == 0
        clock.passes(minutes=6)
        assert webhook_dispatcher.step() == 1
    assert deliveries(own_engine) == [(DeliveryState.DELIVERED, 3)]
    assert len({one.id for one in receiver.received}) == 1
    assert len({one.headers["webhook-timestamp"] for one in receiver.received}) == 3
    assert len({one.body for one in receiver.received}) == 1
    assert all(one.is_signed_with(secret) for one in receiver.received)


def test_a_receiver_that_never_answers_is_given_up_in_the_end(
    own_engine: Engine, webhook_dispatcher: WebhookDispatcher, clock: Clock
) -> None:
    with receiving(answer(503)) as receiver:
        hook(own_engine, receiver.address)
        measured(own_engine, Outcome.MATCH)
        for _ in range(12):
            webhook_dispatcher.step()
            clock.passes(hours=30)
        assert len(receiver.received) == 10
    assert deliveries(own_engine) == [(DeliveryState.FAILED, 10)]


def test_a_receiver_that_is_slow_does_not_keep_the_others_waiting(own_engine: Engine, clock: Clock) -> None:
    measured(own_engine, Outcome.PASS)
    webhook_dispatcher = WebhookDispatcher(own_engine, clock, SafeHttpClient(limit_s=2 * PATIENCE_S))
    quick_was_told = threading.Event()
    while_slow: list[bool] = []

    def noting(request: BaseHTTPRequestHandler) -> None:
        quick_was_told.set()
        answer(204)(request)

    def waiting(_: BaseHTTPRequestHandler) -> None:
        while_slow.append(quick_was_told.wait(PATIENCE_S))  # and then says nothing

    with receiving(waiting) as slow, receiving(noting) as quick:
        for receiver in (slow, slow, quick):
            hook(own_engine, receiver.address)
        measured(own_engine, Outcome.MATCH)
        assert webhook_dispatcher.step() == 3
    assert while_slow == [True, True]
    assert sorted(deliveries(own_engine)) == [
        (DeliveryState.DELIVERED, 1),
        (DeliveryState.WAITING, 1),
        (DeliveryState.WAITING, 1),
    ]


def test_a_receiver_that_is_gone_ends_its_webhook(own_engine: Engine, webhook_dispatcher: WebhookDispatcher) -> None:
    with receiving(answer(410)) as receiver:
        hook(own_engine, receiver.address)
        measured(own_engine, Outcome.MATCH)
        webhook_dispatcher.step()
        measured(own_engine, Outcome.OTHER_FAILURE)
        assert webhook_dispatcher.step() == 0
        assert len(receiver.received) == 1
    with reading(own_engine) as s:
        assert load_webhooks(s) == ()
        assert load_webhooks(s, ended=True)[0].ended == "its receiver answered 410 Gone"


def test_a_webhook_that_was_removed_gets_nothing_more(
    own_engine: Engine, webhook_dispatcher: WebhookDispatcher, clock: Clock
) -> None:
    with receiving(answer(500)) as receiver:
        made, _ = hook(own_engine, receiver.address)
        measured(own_engine, Outcome.MATCH)
        webhook_dispatcher.step()
        with unit_of_work(own_engine) as s:
            remove_webhook(s, made.id, by=OPERATOR, now=clock.now)
        clock.passes(days=1)
        assert webhook_dispatcher.step() == 0
        with unit_of_work(own_engine) as s, pytest.raises(UnknownWebhook, match="has ended"):
            send_again(s, load_deliveries(s, 1)[0][0].id, by=OPERATOR, now=clock.now)
    assert deliveries(own_engine) == [(DeliveryState.FAILED, 1)]


def test_what_was_given_up_is_sent_again_at_a_persons_wish_with_its_log_kept(
    own_engine: Engine, webhook_dispatcher: WebhookDispatcher, clock: Clock
) -> None:
    with receiving(answer(500)) as receiver:
        hook(own_engine, receiver.address)
        measured(own_engine, Outcome.MATCH)
        for _ in range(12):
            webhook_dispatcher.step()
            clock.passes(hours=30)
        receiver.answers[:] = [answer(200)]
        with unit_of_work(own_engine) as s:
            send_again(s, load_deliveries(s, 1)[0][0].id, by=OPERATOR, now=clock.now)
        assert webhook_dispatcher.step() == 1
        assert len({one.id for one in receiver.received}) == 1
    assert deliveries(own_engine) == [(DeliveryState.DELIVERED, 11)]


def test_a_test_is_sent_once_and_is_in_the_log(
    own_engine: Engine, webhook_dispatcher: WebhookDispatcher, clock: Clock
) -> None:
    with receiving(answer(200), answer(404, b"no such hook")) as receiver:
        made, secret = hook(own_engine, receiver.address)
        delivery, said = webhook_dispatcher.try_out(made.id)
        assert (delivery.state, said.is_success) == (DeliveryState.DELIVERED, True)
        delivery, said = webhook_dispatcher.try_out(made.id)
        assert (delivery.state, said.said) == (DeliveryState.FAILED, "404 Not Found: no such hook")
        clock.passes(days=2)
        assert webhook_dispatcher.step() == 0
        assert [one.message["type"] for one in receiver.received] == ["webhook.test"] * 2
        assert all(one.is_signed_with(secret) for one in receiver.received)
    with pytest.raises(UnknownWebhook, match="no webhook is called"):
        webhook_dispatcher.try_out("wh_nothing")


def test_of_two_couriers_one_works(own_engine: Engine, webhook_dispatcher: WebhookDispatcher, clock: Clock) -> None:
    with receiving() as receiver:
        hook(own_engine, receiver.address)
        measured(own_engine, Outcome.MATCH)
        with unit_of_work(own_engine) as s:
            assert take_lease(s, WEBHOOK_LEASE, "another", clock.now, 60.0)
        assert webhook_dispatcher.step() == 0
        clock.passes(minutes=2)  # the other one died
        assert webhook_dispatcher.step() == 1
        assert len(receiver.received) == 1


def test_without_webhooks_a_round_costs_two_queries_and_writes_nothing(
    own_engine: Engine, webhook_dispatcher: WebhookDispatcher, count_statements: CountStatements
) -> None:
    with count_statements(own_engine) as said:
        assert webhook_dispatcher.step() == 0
    assert len(said) == 2
    assert all(one.lstrip().startswith("SELECT") for one in said)


KILLED = """
import sys
from datetime import UTC, datetime
from knowngood.app.store.engine import connect
from knowngood.app.features.webhooks.dispatcher import WebhookDispatcher
from knowngood.app.features.webhooks.http_client import SafeHttpClient
print(WebhookDispatcher(connect(sys.argv[1]), lambda: datetime.now(UTC), SafeHttpClient(limit_s=60)).step())
"""


def test_whoever_is_killed_between_sending_and_writing_it_down_has_it_sent_twice_under_one_id(
    own_engine: Engine, tmp_path: Path
) -> None:
    """The receiver took it, and kills the sender before it knows. Nothing is lost, and the double can be told."""
    measured(own_engine, Outcome.PASS)
    url = str(own_engine.url)
    processes: list[subprocess.Popen[str]] = []

    def killing(request: BaseHTTPRequestHandler) -> None:
        os.kill(processes[0].pid, signal.SIGSTOP)  # so that it writes nothing down, though the answer reaches it
        answer(204)(request)
        request.wfile.flush()
        os.kill(processes[0].pid, signal.SIGKILL)

    with receiving(killing, answer(204)) as receiver:
        _, secret = hook(own_engine, receiver.address)
        measured(own_engine, Outcome.MATCH)
        processes.append(run_courier(url))
        processes[0].communicate(timeout=PATIENCE_S)
        assert processes[0].returncode == -signal.SIGKILL
        assert deliveries(own_engine) == [(DeliveryState.WAITING, 0)]
        with unit_of_work(own_engine) as s:  # its lease runs out; the test does not wait for that
            s.exec_driver_sql("DELETE FROM leases")
        second = run_courier(url)
        assert second.communicate(timeout=PATIENCE_S)[0].endswith("\n1\n")
    assert deliveries(own_engine) == [(DeliveryState.DELIVERED, 1)]
    first, again = receiver.received
    assert (first.id, first.body) == (again.id, again.body)
    assert first.is_signed_with(secret)
    assert again.is_signed_with(secret)


def run_courier(url: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", KILLED, url], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_both_databases_tell_the_same(engine: Engine, clock: Clock) -> None:
    measured(engine, Outcome.PASS)
    webhook_dispatcher = WebhookDispatcher(engine, clock, SafeHttpClient(limit_s=PATIENCE_S))
    with receiving(answer(500), answer(204)) as receiver:
        hook(engine, receiver.address)
        measured(engine, Outcome.MATCH)
        assert webhook_dispatcher.step() == 1
        clock.passes(seconds=6)
        assert webhook_dispatcher.step() == 1
    assert len({one.id for one in receiver.received}) == 1
    assert told(receiver.received[0])[0] == (DYNAMO.id, Verdict.NOT_AFFECTED, Verdict.FLAKY)
    assert deliveries(engine) == [(DeliveryState.DELIVERED, 2)]


def test_the_server_beside_which_it_works_sends_and_stops_with_it(own_engine: Engine) -> None:
    measured(own_engine, Outcome.PASS)
    webhook_dispatcher = WebhookDispatcher(
        connect(str(own_engine.url)), lambda: NOON, SafeHttpClient(limit_s=PATIENCE_S), poll_s=0.05
    )
    with receiving() as receiver:
        hook(own_engine, receiver.address)
        with webhook_dispatcher.at_work():
            measured(own_engine, Outcome.MATCH)
            assert eventually(lambda: bool(receiver.received))
        measured(own_engine, Outcome.OTHER_FAILURE)
        time.sleep(0.3)
        assert len(receiver.received) == 1
