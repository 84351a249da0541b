"""Rulings made in this process from the local store, or from what comes with this release."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from knowngood.cli.knowledge import ground_here
from knowngood.gate.cli.result import Answer
from knowngood.gate.cli.telling import told
from knowngood.gate.request import read_request, rule


def rule_here(fields: Mapping[str, Any], forms: Sequence[str], *, advisory: bool) -> Answer:
    asked, ground = read_request(fields), ground_here()
    ruling = rule(asked, ground.knowledge, datetime.now(UTC), is_snapshot=not ground.has_store, most_days=None)
    return told(ruling, asked, forms, advisory=advisory)
