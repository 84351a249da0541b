"""`knowngood webhook` as people call it: a secret shown once, a real receiver, answers and exit codes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from knowngood.app.domain.verdicts.outcome import Outcome
from knowngood.app.settings import read_settings
from knowngood.app.store.audit_log import load_audit
from knowngood.app.store.engine import connect, reading
from tests.commands.given import Call
from tests.features.webhooks.test_dispatcher import measured
from tests.given_toys import ROOT
from tests.waiting import PATIENCE_S, eventually
from tests.web.receiver import answer, receiving


def added(call: Call, url: str, *more: str) -> tuple[str, str]:
    """The webhook's id and its secret."""
    done = call("webhook", "add", url, *(more or ("--all",)))
    assert done.code == 0, done.err
    found = re.match(r"wh_[0-9a-f]{12}", done.err)
    assert found
    return found[0], done.out.strip()


def test_a_secret_is_printed_alone_and_never_again(call: Call) -> None:
    id_, secret = added(call, "https://example.org/hook")
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret)
    listed = call("webhook", "list")
    assert listed.out == f"{id_}  https://example.org/hook  every issue\n"
    as_json = call("webhook", "list", "--json").out
    assert json.loads(as_json)[0]["id"] == id_
    assert secret not in listed.out + as_json
    assert added(call, "https://example.org/hook")[1] != secret


def test_a_webhook_is_tried_out_and_its_log_says_what_came_back(call: Call) -> None:
    with receiving(answer(204), answer(500, b"broken")) as receiver:
        id_, secret = added(call, receiver.address)
        good, bad = call("webhook", "test", id_), call("webhook", "test", id_)
    assert (good.code, bad.code) == (0, 1)
    assert "204 No Content" in good.out
    assert "500 Internal Server Error: broken" in bad.out
    assert all(one.is_signed_with(secret) for one in receiver.received)
    assert [one.message["type"] for one in receiver.received] == ["webhook.test"] * 2
    log = call("webhook", "log", id_).out
    assert "delivered" in log
    assert "failed" in log
    told = json.loads(call("webhook", "log", "--json").out)
    assert [(one["state"], one["tries"][0]["status"]) for one in told] == [("failed", 500), ("delivered", 204)]
    assert {one["id"] for one in told} == {one.id for one in receiver.received}
    assert call("webhook", "resend", told[0]["id"]).code == 0
    assert json.loads(call("webhook", "log", "--json").out)[0]["state"] == "waiting"


def test_a_webhook_of_a_watch_list_names_it_and_one_that_was_removed_says_so(call: Call, tmp_path: Path) -> None:
    call("watch", "add", "mine", "--issues", "toy-passes-1")
    id_, _ = added(call, "https://example.org/hook", "--watch", "mine")
    assert "watch list mine" in call("webhook", "list").out
    assert call("webhook", "remove", id_).out == f"{id_} is removed\n"
    assert "ended" in call("webhook", "list").out
    again = call("webhook", "remove", id_)
    assert (again.code, "has ended already: removed" in again.err) == (2, True)
    with reading(connect(read_settings().database)) as s:
        actions = [(row.action, row.subject) for row in load_audit(s, 2)]
    assert actions == [("webhook.remove", id_), ("webhook.add", id_)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["add", "https://example.org/"], "say which changes to send: --watch LIST, or --all"),
        (["add", "https://example.org/", "--all", "--watch", "mine"], "say which changes to send"),
        (["add", "https://example.org/", "--watch", "mine"], 'no watch list is called "mine" here'),
        (["add", "http://example.org/", "--all"], "would be sent unencrypted"),
        (["add", "example.org", "--all"], "no address that changes can be sent to"),
        (["test", "wh_nothing"], 'no webhook is called "wh_nothing"'),
        (["remove", "wh_nothing"], 'no webhook is called "wh_nothing"'),
        (["log", "wh_nothing"], 'no webhook is called "wh_nothing"'),
        (["resend", "msg_nothing"], 'no delivery is called "msg_nothing"'),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(call: Call, arguments: list[str], sentence: str) -> None:
    done = call("webhook", *arguments)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert "Traceback" not in done.err
    assert json.loads(call("webhook", "list", "--json").out) == []


def test_nothing_yet_is_told_with_how_to_begin(call: Call) -> None:
    assert "knowngood webhook add" in call("webhook", "list").err
    assert "nothing was sent yet" in call("webhook", "log").err


@pytest.mark.parametrize("value", ["example.org", "ftp://example.org", "https://example.org?x=1"])
def test_a_public_address_that_is_none_is_named(call: Call, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("KNOWNGOOD_PUBLIC_URL", value)
    done = call("webhook", "list")
    assert (done.code, "KNOWNGOOD_PUBLIC_URL" in done.err) == (2, True)


def test_the_server_that_runs_sends_what_changes_meanwhile(call: Call, tmp_path: Path) -> None:
    call("webhook", "list")  # makes the store
    engine = connect(read_settings().database)
    measured(engine, Outcome.PASS)
    with receiving() as receiver:
        _, secret = added(call, receiver.address)
        command = [sys.executable, "-m", "knowngood", "serve", "--port", "0"]
        server = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None
            assert "Known Good is at" in server.stderr.readline()
            measured(engine, Outcome.MATCH)
            assert eventually(lambda: bool(receiver.received))
        finally:
            server.terminate()
            server.communicate(timeout=PATIENCE_S)
    engine.dispose()
    (got,) = receiver.received
    assert got.is_signed_with(secret)
    assert got.message["data"]["cells"][0]["url"].startswith("/cells/")  # no public address is set
