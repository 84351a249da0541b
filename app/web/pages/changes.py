"""`/changes`: verdicts that became other ones, newest first, and the same as a feed."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from app.domain.changes import Cause, CellTurn, Change
from app.domain.issue import Issue
from app.formats.atom import MEDIA, atom_feed
from app.web import remedies
from app.web.addresses import cell_address, issue_address, run_address
from app.web.exports import links_at
from app.web.news import ChangesQuery, load_changes
from app.web.signs import WORDS, Sign, sign_of_verdict
from app.web.visit import API, FEEDS, Visit, Visiting

router = APIRouter(include_in_schema=False)

_FEED = f"{FEEDS}changes.atom"
_LINES = 20

CAUSES = {
    Cause.RUN: "measured here",
    Cause.IMPORT: "imported from {origin}",
    Cause.DERIVED: "derived anew",
}


@dataclass(frozen=True)
class Mark:
    """A verdict as it is shown."""

    sign: Sign
    word: str


@dataclass(frozen=True)
class TurnLine:
    """A cell before and after. `before` is None where the verdict stayed; `workarounds` are sentences."""

    build: str
    hardware: str
    address: str
    before: Mark | None
    after: Mark
    reason: str
    workarounds: tuple[str, ...]


@dataclass(frozen=True)
class ChangeEntry:
    """`more` counts the cells that are not among `lines`."""

    change: Change
    title: str
    address: str
    cause: str
    run_address: str
    lines: tuple[TurnLine, ...]
    more: int


@dataclass(frozen=True)
class ChangesPage:
    entries: tuple[ChangeEntry, ...]
    feed: str
    json_address: str


@router.get("/changes")
def changes(visit: Visiting, query: Annotated[ChangesQuery, Query()]) -> Response:
    with visit.reading() as session:
        found, issues = load_changes(session, query)
    entries = tuple(_entry(visit, change, issues.get(change.issue)) for change in found)
    asked = f"?{urlencode([('issues', issue) for issue in query.issues])}" if query.issues else ""
    return visit.page("changes.html", ChangesPage(entries, f"{_FEED}{asked}", f"{API}/changes{asked}"))


@router.get(_FEED)
def feed(visit: Visiting, query: Annotated[ChangesQuery, Query()]) -> Response:
    with visit.reading() as session:
        found, issues = load_changes(session, query)
    page = f"{visit.base}/changes"
    body = atom_feed(found, issues, links_at(visit.base), address=f"{visit.base}{visit.address}", page=page)
    return visit.text(body, f"{MEDIA}; charset=utf-8", "changes.atom")


def _entry(visit: Visit, change: Change, issue: Issue | None) -> ChangeEntry:
    return ChangeEntry(
        change=change,
        title=visit.in_language(issue.title, issue.title_zh) if issue else "",
        address=issue_address(change.issue) if issue else "",
        cause=visit.say(CAUSES[change.cause], origin=change.origin),
        run_address=run_address(change.run) if change.run else "",
        lines=tuple(_line(visit, change.issue, turn) for turn in change.turns[:_LINES]),
        more=max(0, len(change.turns) - _LINES),
    )


def _line(visit: Visit, issue: str, turn: CellTurn) -> TurnLine:
    before, after = (
        Mark(sign, visit.say(WORDS[sign])) for sign in (sign_of_verdict(turn.before), sign_of_verdict(turn.after))
    )
    return TurnLine(
        build=turn.build,
        hardware=turn.hardware,
        address=cell_address(issue, turn.build, turn.hardware),
        before=None if turn.before is turn.after else before,
        after=after,
        reason=turn.reason,
        workarounds=tuple(
            f"{id_}: {visit.say(remedies.WORDS[b])} → {visit.say(remedies.WORDS[a])}"
            for id_, (b, a) in turn.workarounds.items()
        ),
    )
