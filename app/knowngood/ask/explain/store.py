"""Recorded failures of each issue: the texts that a pasted one is held against."""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from knowngood.domain.grouping import gathered
from knowngood.domain.verdicts.verdict import FAILING
from knowngood.store.engine import Engine, Session, reading
from knowngood.store.evidence import attempt_codec, documents
from knowngood.store.tables import attempts, cells

_OF_EACH = 4  # failures of one issue: the oldest build, the newest, and some between


def find_failures(s: Session) -> dict[str, tuple[str, ...]]:
    """Find, by issue, the ids of attempts that show it, on a few builds that lie as far apart as possible."""
    query = (
        sa.select(cells.c.issue, cells.c.build, cells.c.hardware, cells.c.doc)
        .where(cells.c.verdict.in_(sorted(FAILING)))
        .order_by(cells.c.issue, cells.c.build, cells.c.hardware)
    )
    rows = s.execute(query).all()
    found = (documents.read_cell((issue, build, hardware), doc) for issue, build, hardware, doc in rows)
    by_issue = gathered((cell.issue, cell.evidence) for cell in found if cell.evidence)
    return {issue: tuple(_spread(ids)) for issue, ids in by_issue.items()}


def _spread(ids: Sequence[str]) -> list[str]:
    """Pick the first, the last, and an even spread between them."""
    if len(ids) <= _OF_EACH:
        return list(ids)
    return [ids[at * (len(ids) - 1) // (_OF_EACH - 1)] for at in range(_OF_EACH)]


def load_failures(s: Session, failures: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Load the texts of these attempts by issue: the exception with its traceback, and what the process wrote."""
    wanted = sorted({id_ for ids in failures.values() for id_ in ids})
    texts: dict[str, list[str]] = {}
    for evidence in attempt_codec.load_evidence(s, attempts.c.id.in_(wanted)):
        raised = evidence.attempt.record.raised
        traceback = raised.text if raised and raised.text not in evidence.log else ""
        texts.setdefault(evidence.attempt.issue, []).append(
            f"{evidence.log}\n{traceback}\n{raised.message if raised else ''}"
        )
    return {issue: tuple(each) for issue, each in texts.items()}


def failures_in(engine: Engine) -> dict[str, tuple[str, ...]]:
    """Both in one reading."""
    with reading(engine) as s:
        return load_failures(s, find_failures(s))
