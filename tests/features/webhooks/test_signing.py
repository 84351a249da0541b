"""Messages of webhooks: signed as the specification says, small, and whole enough to act on."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from knowngood.app.domain.verdicts.changes import Change, changes_of
from knowngood.app.domain.verdicts.verdict import Verdict
from knowngood.app.domain.webhook import BadWebhook
from knowngood.app.features.webhooks.signing import (
    change_message,
    read_secret,
    signed_headers,
    trial_message,
    written_secret,
)
from tests.features.changes.test_atom import news
from tests.features.exports.given import LINKS
from tests.make import NOON


def change(count: int, reason: str = "2 of 2 match") -> Change:
    (found,) = changes_of(news(count, reason=reason))
    return found


def message(count: int = 2, **more: Any) -> Any:
    return orjson.loads(
        change_message(change(count, **more), LINKS, watch="mine", address="https://kg.example/changes")
    )


def test_the_signature_is_that_of_the_libraries_of_the_specification() -> None:
    """Their common test vector."""
    sent = datetime.fromtimestamp(1614265330, UTC) + timedelta(milliseconds=900)
    headers = signed_headers(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", sent, b'{"test": 2432232314}'
    )
    assert headers["webhook-id"] == "msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert headers["webhook-timestamp"] == "1614265330"
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("part", ["id", "time", "body", "secret"])
def test_another_id_time_body_or_secret_has_another_signature(part: str) -> None:
    secret = written_secret(b"s" * 32)
    before = signed_headers(secret, "msg_1", NOON, b"body")["webhook-signature"]
    after = signed_headers(
        written_secret(b"t" * 32) if part == "secret" else secret,
        "msg_2" if part == "id" else "msg_1",
        NOON + timedelta(seconds=part == "time"),
        b"bodY" if part == "body" else b"body",
    )["webhook-signature"]
    assert before != after
    signed = hmac.new(b"s" * 32, f"msg_1.{int(NOON.timestamp())}.body".encode(), hashlib.sha256).digest()
    assert before == f"v1,{base64.b64encode(signed).decode()}"


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_c2hvcnQ=", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!!!!"])
def test_what_is_no_secret_signs_nothing(secret: str) -> None:
    with pytest.raises(BadWebhook, match="whsec_ with 24 to 64 bytes"):
        read_secret(secret)


def test_a_message_says_what_changed_why_and_where_to_look() -> None:
    told = message()
    assert (told["type"], told["timestamp"]) == ("verdicts.changed", "2026-11-21T12:01:00Z")
    data = told["data"]
    assert (data["cause"], data["run"], data["watch_list"], data["more"]) == ("run", "run-1", "mine", 0)
    assert data["summary"] == "toy-1: fails on 2 cells; workaround flags stopped working (does not help) on 2 cells"
    cell = data["cells"][0]
    assert (cell["issue"], cell["before"], cell["after"]) == ("toy-1", Verdict.NOT_AFFECTED, Verdict.AFFECTED)
    assert cell["workarounds"] == {"flags": {"before": "effective", "after": "ineffective", "news": "stopped_working"}}
    assert cell["url"].startswith("https://kg.example/cells/toy-1/torch-2.0.0")


def test_a_message_stays_small_however_much_changed_and_counts_the_rest() -> None:
    told = message(300, reason="because " * 100)
    assert (len(told["data"]["cells"]), told["data"]["more"]) == (40, 260)
    assert len(orjson.dumps(told)) < 24_000
    usual = change(40, reason="3 of 3 attempts ended with the issue's own signature")
    assert len(change_message(usual, LINKS, watch="", address="https://kg.example/changes")) < 20_000


def test_a_test_says_that_it_is_one() -> None:
    assert orjson.loads(trial_message(NOON, "wh_1"))["type"] == "webhook.test"
