"""`/watchlists` and `/watchlists/{name}`: which issues a team watches, and how to ask the gate with them."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlencode

from fastapi import APIRouter, Response

from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import WatchList, names_of, watched_issues
from knowngood.matrix.lookups import find_watch_list
from knowngood.store.engine import Session
from knowngood.store.queries import load_issues
from knowngood.store.watch_lists import load_watch_lists
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import (
    API,
    MATRIX,
    feed_address,
    list_badge_address,
    watch_list_address,
)

router = APIRouter(include_in_schema=False)


@router.get("/watchlists")
def watch_lists(context: Context) -> Response:
    def show(lists: Mapping[str, WatchList]) -> Response:
        lines = [(list_, _in_short(context, list_)) for list_ in lists.values()]
        return context.page("watch_lists.html", lines, json_address=f"{API}/watchlists")

    return context.answer(load_watch_lists, show)


@router.get("/watchlists/{name}")
def watch_list(context: Context, name: str) -> Response:
    def load(session: Session) -> tuple[WatchList, Mapping[str, Issue]]:
        return find_watch_list(session, name), {issue.id: issue for issue in load_issues(session)}

    return context.answer(load, lambda loaded: _page(context, *loaded))


def _page(context: RequestContext, shown: WatchList, issues: Mapping[str, Issue]) -> Response:
    try:
        watched, remarks = watched_issues(shown.content.watch, issues, names_of(issues))
    except BadRequest as error:  # the catalogue went on since the list was written
        watched, remarks = (), (str(error),)
    address = watch_list_address(shown.name)
    return context.page(
        "watch_list.html",
        shown,
        contents=tuple(_describe_contents(context, shown)),
        watched=tuple(watched),
        remarks=remarks,
        matrix_address=f"{MATRIX}?{urlencode({'issues': ','.join(issue.id for issue in watched)})}" if watched else "",
        changes_address=f"/changes?{urlencode({'watch': shown.name})}",
        feed=feed_address("watchlists", shown.name),
        badge=list_badge_address(shown.name),
        badge_code=f"[![{shown.name}]({context.base}{list_badge_address(shown.name)})]({context.base}{address})",
        command=f"knowngood gate --watch {shown.name} --server {context.base} -r requirements.txt",
        json_address=f"{API}{address}",
    )


def _describe_contents(context: RequestContext, shown: WatchList) -> Iterator[tuple[str, str]]:
    watch = shown.content.watch
    named = {
        context.say("Issues"): watch.issues,
        context.say("Components"): watch.components,
        context.say("Packages"): watch.packages,
        context.say("Severity at least"): (watch.severity,) if watch.severity else (),
        context.say("Hardware"): shown.content.hardware,
    }
    for label, names in named.items():
        if names:
            yield label, ", ".join(names)


def _in_short(context: RequestContext, list_: WatchList) -> str:
    return list_.content.description or context.say("; ").join(
        f"{label}{context.say(': ')}{text}" for label, text in _describe_contents(context, list_)
    )
