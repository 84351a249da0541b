"""A ruling as the decision document: what server, command line and snapshot print alike. The ruling is the document.

The standard library writes it, since the command has to start fast: a process that imports this module took 173 ms of
CPU, and 336 ms with a pydantic adapter for Ruling (medians of 30, 2026-11-21, 2 cores under load; 139 and 268 ms at
best). OpenAPI tells the shape of the same dataclass; a test holds the two together.
"""

import json
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

from knowngood.domain.message import Message, english
from knowngood.gate.decision import Reason, Ruling


def dump_decision(ruling: Ruling, base: str = "") -> str:
    """The document as JSON text. `base` is the server's address, put before the paths of evidence. Half a surrogate
    pair, which UTF-8 cannot hold, becomes a question mark.
    """
    text = json.dumps(ruling, default=partial(as_json, base=base), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode()


def dumped(body: object) -> str:
    """An answer that holds parts of a ruling, for people to read too."""
    text = json.dumps(body, default=as_json, ensure_ascii=False, indent=2)
    return text.encode("utf-8", "replace").decode() + "\n"


def as_json(value: object, base: str = "") -> Any:  # noqa: ANN401 - whatever JSON is made of
    """A part of a ruling as `json.dumps` takes it, for its `default`."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Reason) and value.evidence_url:
        return {**vars(value), "evidence_url": address(base, value.evidence_url)}
    return english(value) if isinstance(value, Message) else vars(value)


def address(base: str, path: str) -> str:
    """The full address of a path below a server's; the path alone without a server, and a full address as it is."""
    return f"{base.rstrip('/')}{path}" if path.startswith("/") else path
