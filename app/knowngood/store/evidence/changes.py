"""Changes of the matrix, read back from the events that announced them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

import sqlalchemy as sa

from knowngood.domain.builds.packages import BuildCheck
from knowngood.domain.errors import BadRequest
from knowngood.domain.grouping import grouped
from knowngood.domain.hardware_classes import whole_class, with_isa_classes
from knowngood.domain.message import Message
from knowngood.domain.verdicts.changes import Cause, CellNews, Change, Earlier, Place
from knowngood.domain.verdicts.verdict import Cell, CellKey, Verdict, WorkaroundVerdict
from knowngood.serialization.by_type import read_value
from knowngood.store import unreadable
from knowngood.store.engine import Session
from knowngood.store.evidence.cells import (
    CHANGED,
    CHECKED,
    IMPORTED,
    UNVOIDED,
    VOIDED,
    announce,
    derive_until,
    touch,
)
from knowngood.store.queries import load_cells
from knowngood.store.statements import among, place_of
from knowngood.store.tables import attempts, cells, events, notes

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
        wanted.append(_of_line(s, line))
    newest = sa.select(events).where(*wanted).order_by(events.c.id.desc()).limit(limit + 1)
    news = _all_news(s, s.execute(newest).all()[::-1])
    if len(news) <= limit:
        return news
    whole = tuple(step for step in news if step.belongs_to != news[0].belongs_to)
    return whole or news[1:]


def note_checks(s: Session, checks: Iterable[BuildCheck], now: datetime) -> None:
    """Announce what is news: a build that could be installed until now, or could not. Where nothing was announced it
    could.
    """
    touch(s)
    told = sa.select(events.c.data).where(events.c.kind == CHECKED).order_by(events.c.id)
    last = {data["build"]: data["is_installable"] for data in s.execute(told).scalars()}
    for check in checks:
        if check.is_installable not in {None, last.get(check.build, True)}:
            announce(s, CHECKED, now, **vars(check))


def load_checks(s: Session, limit: int, line: str = "") -> tuple[Change, ...]:
    """The newest of what was announced so, of the builds of one line of torch or of all; what was found at once is one
    change.
    """
    checked = sa.select(events).where(events.c.kind == CHECKED, *([_of_line(s, line)] if line else []))
    rows = ((str(row.id), row) for row in s.execute(checked.order_by(events.c.id.desc()).limit(limit)))
    checks = unreadable.readable("events", rows, lambda row: (row.at, BuildCheck(**row.data)))
    return tuple(
        Change(f"index {at.isoformat()}", at, Cause.INDEX, "", "", (), tuple(check for _, check in some))
        for at, some in grouped(checks, itemgetter(0)).items()
    )


def load_cell_news(s: Session, issue: str, build: str, hardware: str, limit: int) -> tuple[CellNews, ...]:
    """The newest steps of one cell, in the order in which they happened."""
    of_cell = sa.and_(_steps_of([issue]), _event_value(s, "build") == build, _event_value(s, "hardware") == hardware)
    newest = sa.select(events).where(of_cell).order_by(events.c.id.desc()).limit(limit)
    return _all_news(s, s.execute(newest).all()[::-1])


def _of_line(s: Session, line: str) -> sa.ColumnElement[bool]:
    return _event_value(s, "build").startswith(f"torch-{line}.", autoescape=True)


def _event_value(s: Session, name: str) -> sa.ColumnElement[str]:
    """The value that an event has under a name. SQLite gives the whole question up at the first row that is no JSON."""
    value: sa.ColumnElement[str] = events.c.data[name].as_string()
    if s.dialect.name != "sqlite":
        return value
    return sa.case((sa.func.json_valid(events.c.data) == 1, value))


def _steps_of(issues: Collection[str]) -> sa.ColumnElement[bool]:
    """The changes of cells of these issues: no other event has an issue. Said so that the index of those is used, which
    neither database sees by itself; by their kind it would look through the changes of all issues.
    """
    return sa.and_(events.c.issue.in_(sorted(issues)), sa.text("events.issue <> ''"))


def load_earlier(s: Session, news: Sequence[CellNews]) -> Earlier:
    """Earlier measurements, before these steps, of the cells that they say were not measured.

    Asks nothing where there is no such cell.
    """
    unmeasured = {step.place for step in news if _begins(step)}
    if not unmeasured:
        return Earlier()
    issues = sorted({place[0] for place in unmeasured})
    query = sa.select(events.c.id, events.c.data).where(
        _steps_of(issues), events.c.id < min(step.event for step in news)
    )
    earlier = Earlier()
    rows = ((str(id_), data) for id_, data in s.execute(query.order_by(events.c.id)))
    for place, after, turned in unreadable.readable("events", rows, _step):
        if place in unmeasured:
            earlier.learn(place, [after], {id_: findings[1:] for id_, findings in turned.items()})
    return earlier


def _step(data: Mapping[str, Any]) -> tuple[Place, Any, dict[str, Any]]:
    return (data["issue"], data["hardware"], data["build"]), _verdict(data["after"]), _turned(data)


def _begins(step: CellNews) -> bool:
    """Whether it says of a cell, or of a workaround, that there was no verdict."""
    if step.before in {None, Verdict.NOT_RUN}:
        return True
    return any(before in {None, WorkaroundVerdict.UNVERIFIED} for before, _ in step.workarounds.values())


def _all_news(s: Session, rows: Sequence[Any]) -> tuple[CellNews, ...]:
    commits = _commits(s, {row.at for row in rows if not row.run})
    named = ((str(row.id), row) for row in rows)
    return tuple(
        unreadable.readable("events", named, lambda row: _news(row, *commits.get(row.at, ("", Cause.DERIVED))))
    )


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


# The matrix as it was known at a past moment.
#
# What the store can honestly say: each attempt is kept with the time at which it was finished. So "known then" means
# what all attempts finished by then say, judged by today's catalogue and rules. Evidence that came in later, in a
# bundle, counts from when it was measured, because that is what is kept of it. What a page said at that moment may have
# differed where a rule, a repro or a signature has changed since: older results of a changed repro do not count then
# either. What people said of a cell (that it is void, say) counts from when they said it.


MOST_ATTEMPTS = 10_000
"""How many attempts one answer judges anew; more are refused: 2,476 of the shipped ones took 0.8 s of one core
(2026-11-21)."""


def load_cells_at(
    s: Session,
    at: datetime,
    *,
    issues: Collection[str] | None = None,
    builds: Collection[str] | None = None,
    hardware: Collection[str] | None = None,
) -> tuple[Cell, ...]:
    """Like `load_cells`, as known `at` that moment. For now, and wherever nothing was measured since, the same values.

    Only cells with a later attempt are derived again. Raises BadRequest where that would take MOST_ATTEMPTS or more.
    """
    live = load_cells(s, issues=issues, builds=builds, hardware=hardware)
    classes = None if hardware is None else with_isa_classes(hardware)
    moved = _moved_since(s, at, among(*zip(place_of(cells), (issues, builds, classes), strict=True)))
    cost = sum(moved.values())
    if cost > MOST_ATTEMPTS:
        raise BadRequest(
            f"{cost:,} attempts would have to be judged anew, more than {MOST_ATTEMPTS:,}; "
            "ask for fewer issues, builds or hardware classes"
        )
    resting = {key._replace(hardware=whole_class(key.hardware)) for key in moved} - moved.keys()
    past = {cell.key: cell for cell in derive_until(s, {*resting, *(key for key, n in moved.items() if n)}, at)}
    cells_then = (past.get(cell.key) if cell.key in moved or cell.key in resting else cell for cell in live)
    return tuple(cell for cell in cells_then if cell is not None)


def _moved_since(s: Session, at: datetime, wanted: Collection[sa.ColumnElement[bool]]) -> dict[CellKey, int]:
    """Cells with an attempt or a note after `at`, with how many attempts they had then. Per cell a few looks into
    indexes, however long its history.
    """
    earlier = sa.select(sa.func.count()).where(_of_cell(attempts), attempts.c.finished_at <= at).scalar_subquery()
    measured = sa.select(attempts.c.id).where(_of_cell(attempts), attempts.c.finished_at > at).exists()
    noted = sa.select(notes.c.id).where(_of_cell(notes), notes.c.at > at).exists()
    query = sa.select(*place_of(cells), earlier).where(sa.or_(measured, noted), *wanted)
    return {CellKey(*place): n for *place, n in s.execute(query)}


def _of_cell(table: sa.Table) -> sa.ColumnElement[bool]:
    return sa.and_(*(table.c[name] == cells.c[name] for name in ("issue", "build", "hardware")))
