"""What changed in the matrix, read back from the events that told it."""

from collections.abc import Collection, Mapping
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session

from app.domain.changes import CellNews
from app.domain.verdict import Verdict, WorkaroundVerdict
from app.store.cells import CHANGED, IMPORTED
from app.store.tables import events


def load_news(s: Session, limit: int, *, issues: Collection[str] | None = None) -> tuple[CellNews, ...]:
    """The newest `limit` steps, in the order in which they happened; of these issues, or of all.

    Where that cuts into what one cause did, all of it is left out, unless nothing else would be left: half of a run
    would tell of cells as they were in the middle of it.
    """
    wanted = [events.c.kind == CHANGED]
    if issues is not None:
        wanted.append(events.c.data["issue"].as_string().in_(sorted(issues)))
    newest = sa.select(events).where(*wanted).order_by(events.c.id.desc()).limit(limit + 1)
    rows = s.execute(newest).all()[::-1]
    origins = _origins(s, rows[0].at) if rows else {}
    news = [_news(row, origins) for row in rows]
    if len(news) <= limit:
        return tuple(news)
    whole = [one for one in news if one.belongs_to != news[0].belongs_to]
    return tuple(whole or news[1:])


def _origins(s: Session, since: datetime) -> Mapping[datetime, str]:
    """Where each import came from, by its moment: an import is one commit, and all of it has one time."""
    query = sa.select(events.c.at, events.c.data).where(events.c.kind == IMPORTED, events.c.at >= since)
    return {at: str(data["origin"]) for at, data in s.execute(query)}


def _news(row: sa.Row[tuple[object, ...]], origins: Mapping[datetime, str]) -> CellNews:
    data = row.data
    turned = data.get("workarounds", {})  # events from before 0.2 told neither these nor a reason
    return CellNews(
        at=row.at,
        issue=data["issue"],
        build=data["build"],
        hardware=data["hardware"],
        before=_verdict(data["before"]),
        after=_verdict(data["after"]),
        reason=data.get("reason", ""),
        workarounds={id_: (_finding(before), _finding(after)) for id_, (before, after) in turned.items()},
        run=row.run,
        origin="" if row.run else origins.get(row.at, ""),
    )


def _verdict(word: str | None) -> Verdict | None:
    return Verdict(word) if word else None


def _finding(word: str | None) -> WorkaroundVerdict | None:
    return WorkaroundVerdict(word) if word else None
