"""Changes of the matrix, read back from the events that told them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from knowngood.domain.message import Message
from knowngood.domain.verdicts.changes import Cause, CellNews, Earlier, Place
from knowngood.domain.verdicts.verdict import Verdict, WorkaroundVerdict
from knowngood.serialization.by_type import read_value
from knowngood.store import unreadable
from knowngood.store.engine import Session
from knowngood.store.evidence.cells import CHANGED, IMPORTED, UNVOIDED, VOIDED
from knowngood.store.tables import events

_OTHERWISE = {
    "catalogue_saved": Cause.CATALOGUE,
    "cell_noted": Cause.NOTE,
    VOIDED: Cause.VOID,
    UNVOIDED: Cause.UNVOID,
}


def load_news(s: Session, limit: int, *, issues: Collection[str] | None = None, line: str = "") -> tuple[CellNews, ...]:
    """The newest `limit` steps, in the order in which they happened; of these issues (None: of all), and of the builds
    of one line of torch (`2.8`; empty: of all).

    Where that cuts into what one cause did, all of it is left out, unless nothing else would be left: half of a run
    would tell of cells as they were in the middle of it.
    """
    wanted = [events.c.kind == CHANGED] if issues is None else [_steps_of(issues)]
    if line:
        wanted.append(_said(s, "build").startswith(f"torch-{line}.", autoescape=True))
    newest = sa.select(events).where(*wanted).order_by(events.c.id.desc()).limit(limit + 1)
    news = _all_news(s, s.execute(newest).all()[::-1])
    if len(news) <= limit:
        return news
    whole = tuple(one for one in news if one.belongs_to != news[0].belongs_to)
    return whole or news[1:]


def load_cell_news(s: Session, issue: str, build: str, hardware: str, limit: int) -> tuple[CellNews, ...]:
    """The newest steps of one cell, in the order in which they happened."""
    of_cell = sa.and_(_steps_of([issue]), _said(s, "build") == build, _said(s, "hardware") == hardware)
    newest = sa.select(events).where(of_cell).order_by(events.c.id.desc()).limit(limit)
    return _all_news(s, s.execute(newest).all()[::-1])


def _said(s: Session, name: str) -> sa.ColumnElement[str]:
    """The value that an event has under a name. SQLite gives the whole question up at the first row that is no JSON."""
    found: sa.ColumnElement[str] = events.c.data[name].as_string()
    if s.dialect.name != "sqlite":
        return found
    return sa.case((sa.func.json_valid(events.c.data) == 1, found))


def _steps_of(issues: Collection[str]) -> sa.ColumnElement[bool]:
    """The changes of cells of these issues: no other event has an issue. Said so that the index of those is used, which
    neither database sees by itself; by their kind it would look through the changes of all issues.
    """
    return sa.and_(events.c.issue.in_(sorted(issues)), sa.text("events.issue <> ''"))


def load_earlier(s: Session, news: Sequence[CellNews]) -> Earlier:
    """Earlier measurements, before these steps, of the cells that they say were not measured.

    Asks nothing where there is no such cell.
    """
    unmeasured = {one.place for one in news if _begins(one)}
    if not unmeasured:
        return Earlier()
    issues = sorted({place[0] for place in unmeasured})
    query = sa.select(events.c.id, events.c.data).where(_steps_of(issues), events.c.id < min(one.event for one in news))
    earlier = Earlier()
    rows = ((str(id_), data) for id_, data in s.execute(query.order_by(events.c.id)))
    for place, after, turned in unreadable.readable("events", rows, _step):
        if place in unmeasured:
            earlier.learn(place, [after], {id_: findings[1:] for id_, findings in turned.items()})
    return earlier


def _step(data: Mapping[str, Any]) -> tuple[Place, Any, dict[str, Any]]:
    return (data["issue"], data["hardware"], data["build"]), _verdict(data["after"]), _turned(data)


def _begins(one: CellNews) -> bool:
    """Whether it says of a cell, or of a workaround, that there was no verdict."""
    if one.before in {None, Verdict.NOT_RUN}:
        return True
    return any(before in {None, WorkaroundVerdict.UNVERIFIED} for before, _ in one.workarounds.values())


def _all_news(s: Session, rows: Sequence[Any]) -> tuple[CellNews, ...]:
    told = _commits(s, {row.at for row in rows if not row.run})
    named = ((str(row.id), row) for row in rows)
    return tuple(unreadable.readable("events", named, lambda row: _news(row, *told.get(row.at, ("", Cause.DERIVED)))))


def _commits(s: Session, moments: Iterable[datetime]) -> Mapping[datetime, tuple[str, Cause]]:
    """The cause of each commit, by its moment: the origin of an import (else empty), and what it was otherwise.

    An import is one commit, and all of it has one time.
    """
    among = sorted(moments)
    if not among:
        return {}
    known = sa.and_(events.c.kind.in_([IMPORTED, *_OTHERWISE]), events.c.at.between(among[0], among[-1]))
    return {
        row.at: (
            str(row.data.get("origin", "")) if row.kind == IMPORTED else "",
            _OTHERWISE.get(row.kind, Cause.DERIVED),
        )
        for row in s.execute(sa.select(events.c.at, events.c.kind, events.c.data).where(known))
    }


def _news(row: Any, origin: str, otherwise: Cause) -> CellNews:  # noqa: ANN401 - a row of the driver
    data = row.data
    return CellNews(
        at=row.at,
        issue=data["issue"],
        build=data["build"],
        hardware=data["hardware"],
        before=_verdict(data["before"]),
        after=_verdict(data["after"]),
        reason=read_value(Message, data.get("message") or data.get("reason", "")),  # older events have a text, or none
        workarounds=_turned(data),
        run=row.run,
        origin="" if row.run else origin,
        otherwise=otherwise,
        event=row.id,
    )


def _turned(data: Mapping[str, Any]) -> dict[str, tuple[WorkaroundVerdict | None, WorkaroundVerdict | None]]:
    return {id_: (_finding(before), _finding(after)) for id_, (before, after) in data.get("workarounds", {}).items()}


def _verdict(word: str | None) -> Verdict | None:
    return Verdict(word) if word else None


def _finding(word: str | None) -> WorkaroundVerdict | None:
    return WorkaroundVerdict(word) if word else None
