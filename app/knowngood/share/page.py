"""`/changes`: verdicts that became other ones, newest first; and the same as feeds, of everything or of one thing."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Response

from knowngood.domain.builds.build_names import BuildNames
from knowngood.domain.errors import UnknownBuild
from knowngood.domain.grouping import grouped
from knowngood.domain.verdicts.changes import CellTurn, CureNews, CureTurn
from knowngood.domain.vocabulary import WORKAROUNDS
from knowngood.environments.wheels.locks import constraints_of
from knowngood.environments.wheels.table import wheels_of
from knowngood.matrix.lookups import find_build
from knowngood.share.atom import MEDIA, atom_feed, title_of
from knowngood.share.exports.extract import links_at
from knowngood.share.service import ChangesQuery, News, feed_of, load_changes
from knowngood.store.engine import Session
from knowngood.web.errors import NotFound
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import CHANGES_FEED, constraints_address, part

router = APIRouter(include_in_schema=False)

_LINES = 20

NEWS_WORDS = {
    CureNews.NO_LONGER_NEEDED: "workaround {id} is no longer needed",
    CureNews.STOPPED_WORKING: "workaround {id} stopped working",
    CureNews.NOW_WORKS: "workaround {id} works now",
    CureNews.NOW_HELPS_IN_PART: "workaround {id} helps in part now",
}


@router.get("/changes")
def changes(context: Context, query: Annotated[ChangesQuery, Query()]) -> Response:
    return context.answer(
        lambda session: load_changes(session, query),
        lambda news: _page(context, query, news),
    )


def _page(context: RequestContext, query: ChangesQuery, news: News) -> Response:
    without = news.query.removesuffix("first=true").rstrip("?&")
    other = without if query.first else f"{news.query}{'&' if news.query else '?'}first=true"
    return context.page(
        "changes.html",
        news,
        most=_LINES,
        title_of=title_of,
        workarounds=partial(_workarounds, context),
        other_address=f"/changes{other}",
        feed=feed_of(news.question, news.query),
    )


@router.get("/constraints/{name}.txt")
def constraints(context: Context, name: str) -> Response:
    """Constraints for pip, of what was measured together with a build: text, always in English."""

    def load(session: Session) -> str:
        build, builds = find_build(session, name)
        try:
            return constraints_of(build, BuildNames(builds), wheels_of(context.known(session)))
        except UnknownBuild as error:
            raise NotFound(error.problem, [(near, constraints_address(near)) for near in error.nearest]) from None

    return context.answer(load, lambda text: context.text(text, "text/plain; charset=utf-8", f"{part(name)}.txt"))


@router.get(CHANGES_FEED)
def feed(context: Context, query: Annotated[ChangesQuery, Query()]) -> Response:
    return _feed(context, query, "changes.atom")


@router.get("/feeds/issues/{issue}.atom")
def issue_feed(context: Context, issue: str) -> Response:
    return _feed(context, ChangesQuery(issues=[issue]), "issue.atom")


@router.get("/feeds/components/{component:path}.atom")
def component_feed(context: Context, component: str) -> Response:
    return _feed(context, ChangesQuery(issues=[], component=component), "component.atom")


@router.get("/feeds/lines/{line}.atom")
def line_feed(context: Context, line: str) -> Response:
    return _feed(context, ChangesQuery(issues=[], line=line), "line.atom")


@router.get("/feeds/watchlists/{name}.atom")
def watch_list_feed(context: Context, name: str) -> Response:
    return _feed(context, ChangesQuery(issues=[], watch=name), "watchlist.atom")


def _feed(context: RequestContext, query: ChangesQuery, file_name: str) -> Response:
    def show(news: News) -> Response:
        body = atom_feed(
            news.changes,
            news.issues,
            links_at(context.base),
            address=f"{context.base}{feed_of(news.question, news.query)}",
            page=f"{context.base}/changes{news.query}",
            about=news.about,
        )
        return context.text(body, f"{MEDIA}; charset=utf-8", file_name)

    return context.answer(lambda session: load_changes(session, query), show)


def _workarounds(context: RequestContext, turn: CellTurn) -> tuple[str, ...]:
    """The news that matters to users first, each by itself; all others that turned alike in one line."""
    ordered = sorted(turn.workarounds.items(), key=lambda item: (list(CureNews).index(item[1].news), item[0]))
    stated = [(id_, cure) for id_, cure in ordered if cure.news in NEWS_WORDS]
    others = ((id_, cure) for id_, cure in ordered if cure.news not in NEWS_WORDS)
    alike = grouped(others, lambda item: _steps(context, item[1]))
    return (
        *(f"{context.say(NEWS_WORDS[cure.news], id=id_)} ({_steps(context, cure)})" for id_, cure in stated),
        *(f"{', '.join(id_ for id_, _ in some)}: {steps}" for steps, some in alike.items()),
    )


def _steps(context: RequestContext, turn: CureTurn) -> str:
    return f"{context.say(WORKAROUNDS[turn.before].word)} → {context.say(WORKAROUNDS[turn.after].word)}"
