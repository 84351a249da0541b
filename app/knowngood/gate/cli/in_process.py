"""Rulings made in this process: from a snapshot, which opens no database, else from the local store, or from what comes
with this release.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from knowngood.cli.knowledge import ground_here, read_given
from knowngood.gate.cli.result import Answer
from knowngood.gate.renderers import Form, render
from knowngood.gate.request import read_request, rule


def rule_here(
    fields: Mapping[str, Any], forms: Sequence[str], *, advisory: bool, snapshot: str, keys: Sequence[str]
) -> Answer:
    """`snapshot` is empty where none is named. Raises BadSnapshot, also for one that is older than the policy takes."""
    asked, now = read_request(fields), datetime.now(UTC)
    if snapshot:
        given, remark = read_given(snapshot, keys)
        ruling = rule(asked, given.knowledge, now, is_snapshot=True)
    else:
        ground, remark = ground_here(), ""
        ruling = rule(asked, ground.knowledge, now, is_snapshot=not ground.has_store, most_days=None)
    where = asked.environment.name if asked.environment else ""
    texts = {form: render(ruling, Form(form), where=where, advisory=advisory) for form in forms}
    return Answer(ruling.decision.value, texts, [remark] if remark else [])
