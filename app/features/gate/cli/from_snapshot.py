"""Rulings made in this process from a snapshot, which opens no database."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from knowngood.app.domain.errors import BadSnapshot
from knowngood.app.features.gate.cli.result import Answer
from knowngood.app.features.gate.cli.telling import told
from knowngood.app.features.gate.request import read_request, rule
from knowngood.app.knowledge.signed_snapshot import read_snapshot

_UNCHECKED = (
    "the snapshot was not checked against a key that you know; it says that {key} signed it. "
    "Name the key that you trust with --public-key"
)


def rule_from_snapshot(
    path: Path, keys: Sequence[str], fields: Mapping[str, Any], forms: Sequence[str], *, advisory: bool
) -> Answer:
    """Raises BadSnapshot, also for one that is older than the policy takes."""
    try:
        snapshot = read_snapshot(path.read_bytes(), keys)
    except OSError as error:
        raise BadSnapshot(f"the snapshot {path} cannot be read: {error.strerror}") from None
    asked = read_request(fields)
    ruling = rule(asked, snapshot.knowledge, datetime.now(UTC), is_snapshot=True)
    remarks = () if snapshot.is_trusted else (_UNCHECKED.format(key=snapshot.key),)
    return told(ruling, asked, forms, advisory=advisory, remarks=remarks)
