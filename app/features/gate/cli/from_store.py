"""Rulings made in this process from the local store."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from knowngood.app.cli.knowledge import knowledge_here
from knowngood.app.features.gate.cli.result import Answer
from knowngood.app.features.gate.cli.telling import told
from knowngood.app.features.gate.request import read_request, rule


def rule_here(fields: Mapping[str, Any], forms: Sequence[str], *, advisory: bool) -> Answer:
    asked = read_request(fields)
    return told(rule(asked, knowledge_here(), datetime.now(UTC)), asked, forms, advisory=advisory)
