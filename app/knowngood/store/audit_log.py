"""The audit log: who changed tokens, watch lists, results or what people say of cells. Rows are only added."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from knowngood.domain.access import Actor
from knowngood.store.engine import Session
from knowngood.store.tables import audit

_LONGEST = 300  # of the subject: as wide as its column


@dataclass(frozen=True)
class AuditRow:
    """`token` is the public part of the token that did it; empty at the command line."""

    id: int
    at: datetime
    actor: str
    token: str
    action: str
    subject: str
    data: Mapping[str, Any]


def note(s: Session, actor: Actor, action: str, subject: str, now: datetime, **data: object) -> None:
    """Write down a change in the transaction that makes it, so that neither is there without the other."""
    row = {"at": now, "actor": actor.name, "token": actor.token, "action": action, "subject": subject[:_LONGEST]}
    s.execute(sa.insert(audit).values(**row, data=data))


def load_audit(s: Session, limit: int = 100, before: int | None = None) -> tuple[AuditRow, ...]:
    """Newest first; those older than the row `before`."""
    query = sa.select(audit).order_by(audit.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(audit.c.id < before)
    return tuple(AuditRow(**row) for row in s.execute(query).mappings())
