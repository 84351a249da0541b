"""Rulings made in this process from a snapshot, which opens no database."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from knowngood.cli.knowledge import read_given
from knowngood.gate.cli.result import Answer
from knowngood.gate.cli.telling import told
from knowngood.gate.request import read_request, rule


def rule_from_snapshot(
    path: str, keys: Sequence[str], fields: Mapping[str, Any], forms: Sequence[str], *, advisory: bool
) -> Answer:
    """Raises BadSnapshot, also for one that is older than the policy takes."""
    snapshot, remark = read_given(path, keys)
    asked = read_request(fields)
    ruling = rule(asked, snapshot.knowledge, datetime.now(UTC), is_snapshot=True)
    return told(ruling, asked, forms, advisory=advisory, remarks=(remark,) if remark else ())
