"""`/watchlists` and `/watchlists/{name}`: which issues a team watches, and how to ask the gate with them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from knowngood.app.dashboard.lookups import find_watch_list
from knowngood.app.domain.access import Scope
from knowngood.app.domain.errors import BadRequest
from knowngood.app.domain.issue import Issue
from knowngood.app.domain.issue_selectors import names_of, watched_issues
from knowngood.app.domain.watch_list import WatchList
from knowngood.app.features.watchlists.edit_page import NEW, may_change
from knowngood.app.store.engine import Session
from knowngood.app.store.queries import load_issues
from knowngood.app.store.watch_lists import load_watch_list_versions, load_watch_lists
from knowngood.app.web.request_context import Context, RequestContext
from knowngood.app.web.urls import (
    API,
    MATRIX,
    list_badge_address,
    watch_list_address,
    watch_list_edit_address,
    watch_list_feed,
)

router = APIRouter(include_in_schema=False)

_VERSIONS_SHOWN = 20


@dataclass(frozen=True)
class WatchListLine:
    watch_list: WatchList
    address: str
    says: str


@dataclass(frozen=True)
class WatchListsPage:
    """`new_address` leads to an empty form; it is empty itself where the reader may not keep lists."""

    lines: tuple[WatchListLine, ...]
    new_address: str
    json_address: str


@dataclass(frozen=True)
class WatchListPage:
    """`remarks` say what of the list names nothing here. `versions` are the addresses of all of them; `edit_address` is
    empty where the reader may not change the list.
    """

    watch_list: WatchList
    said: tuple[tuple[str, str], ...]
    watched: tuple[Issue, ...]
    remarks: tuple[str, ...]
    versions: tuple[tuple[int, str], ...]
    is_old: bool
    matrix_address: str
    changes_address: str
    feed: str
    edit_address: str
    command: str
    badge: str
    badge_code: str
    json_address: str


@router.get("/watchlists")
def watch_lists(context: Context) -> Response:
    return context.answer(
        load_watch_lists, lambda found: context.page("watch_lists.html", watch_lists_page(context, found))
    )


def watch_lists_page(context: RequestContext, found: Mapping[str, WatchList]) -> WatchListsPage:
    lines = tuple(WatchListLine(one, watch_list_address(one.name), _in_short(context, one)) for one in found.values())
    may_keep = bool(context.principal.session) and context.principal.may(Scope.TRIAGE)
    return WatchListsPage(lines, NEW if may_keep else "", f"{API}/watchlists")


@router.get("/watchlists/{name}")
def watch_list(
    context: Context, name: str, version: Annotated[int | None, Query(ge=1, le=2_000_000_000)] = None
) -> Response:
    def load(session: Session) -> tuple[WatchList, Sequence[int], Mapping[str, Issue]]:
        newest = find_watch_list(session, name)
        shown = newest if version is None else find_watch_list(session, name, version)
        numbers = load_watch_list_versions(session, name)[:_VERSIONS_SHOWN]
        return shown, numbers, {issue.id: issue for issue in load_issues(session)}

    return context.answer(load, lambda found: context.page("watch_list.html", _page(context, *found)))


def _page(
    context: RequestContext, shown: WatchList, numbers: Sequence[int], issues: Mapping[str, Issue]
) -> WatchListPage:
    try:
        watched, remarks = watched_issues(shown.content.watch, issues, names_of(issues))
    except BadRequest as error:  # the catalogue went on since the list was written
        watched, remarks = (), (str(error),)
    address = watch_list_address(shown.name)
    is_old = shown.version != numbers[0]
    query = f"?version={shown.version}" if is_old else ""
    return WatchListPage(
        watch_list=shown,
        said=tuple(_said(context, shown)),
        watched=tuple(watched),
        remarks=remarks,
        versions=tuple((number, f"{address}?version={number}") for number in numbers),
        is_old=is_old,
        matrix_address=f"{MATRIX}?{urlencode({'issues': ','.join(one.id for one in watched)})}" if watched else "",
        changes_address=f"/changes?{urlencode({'watch': shown.name})}",
        feed=watch_list_feed(shown.name),
        edit_address=watch_list_edit_address(shown.name) if not is_old and may_change(context, shown) else "",
        badge=list_badge_address(shown.name),
        badge_code=f"[![{shown.name}]({context.base}{list_badge_address(shown.name)})]({context.base}{address})",
        command=f"knowngood gate --watch {shown.name} --server {context.base} -r requirements.txt",
        json_address=f"{API}{address}{query}",
    )


def _said(context: RequestContext, shown: WatchList) -> Iterator[tuple[str, str]]:
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


def _in_short(context: RequestContext, one: WatchList) -> str:
    return one.content.description or context.say("; ").join(
        f"{label}{context.say(': ')}{text}" for label, text in _said(context, one)
    )
