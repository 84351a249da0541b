"""Messages to webhooks: the body that tells of one change, and the signature.

By the Standard Webhooks specification,
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md (version 1.0.0): HMAC-SHA256
over `id.timestamp.body`, secrets as base64 after `whsec_`, three headers that begin with `webhook-`.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime

import orjson

from knowngood.app.domain.verdicts.changes import CellTurn, Change
from knowngood.app.domain.webhook import BadWebhook
from knowngood.app.features.changes.atom import because, title_of
from knowngood.app.features.exports.extract import Links, utc

CHANGED, TEST = "verdicts.changed", "webhook.test"

SECRET_PREFIX = "whsec_"  # noqa: S105 - how secrets begin
SECRET_BYTES = 32
_MOST_CELLS = 40  # about 16 kB: receivers and their proxies are known to refuse bodies of more than 20 kB


def written_secret(key: bytes) -> str:
    return SECRET_PREFIX + base64.b64encode(key).decode()


def read_secret(secret: str) -> bytes:
    """Raises BadWebhook for what is no secret."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not secret.startswith(SECRET_PREFIX) or not 24 <= len(key) <= 64:  # noqa: PLR2004 - the specification's
        raise BadWebhook("a webhook's secret is whsec_ with 24 to 64 bytes in base64 behind it")
    return key


def signed_headers(secret: str, id_: str, now: datetime, body: bytes) -> dict[str, str]:
    """The headers of one try: the time is that of sending, so a receiver can refuse what is old."""
    timestamp = str(int(now.timestamp()))
    signed = b".".join((id_.encode(), timestamp.encode(), body))
    signature = base64.b64encode(hmac.new(read_secret(secret), signed, hashlib.sha256).digest()).decode()
    return {
        "Content-Type": "application/json",
        "webhook-id": id_,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
    }


def change_message(change: Change, links: Links, *, watch: str, address: str) -> str:
    """The body that tells of `change`, as much of it as the watch list `watch` concerns (empty: of all).

    `address` is where all changes are shown. What is cut off is counted in `more`.
    """
    data = {
        "change": change.key,
        "cause": change.cause,
        "because": because(change),
        "run": change.run,
        "origin": change.origin,
        "watch_list": watch or None,
        "summary": title_of(change),
        "issues": list(change.issues),
        "cells": [_cell(turn, links) for turn in change.turns[:_MOST_CELLS]],
        "more": max(0, len(change.turns) - _MOST_CELLS),
        "url": address,
    }
    return _message(CHANGED, change.at, data)


def trial_message(now: datetime, webhook: str) -> str:
    return _message(TEST, now, {"webhook": webhook, "summary": "a test: nothing has changed"})


def _cell(turn: CellTurn, links: Links) -> Mapping[str, object]:
    return {
        "issue": turn.issue,
        "build": turn.build,
        "hardware": turn.hardware,
        "before": turn.before,
        "after": turn.after,
        "reason": turn.reason[:_LONGEST_REASON],
        "workarounds": {
            id_: {"before": one.before, "after": one.after, "news": one.news} for id_, one in turn.workarounds.items()
        },
        "url": links.cell(turn.issue, turn.build, turn.hardware),
    }


_LONGEST_REASON = 200


def _message(type_: str, at: datetime, data: Mapping[str, object]) -> str:
    return orjson.dumps({"type": type_, "timestamp": utc(at), "data": data}).decode()
