"""`/workers`: who measures, how busy it is, what a cell costs there, what it does now, and what nobody can measure."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Query, Response

from knowngood.domain.issue import Issue
from knowngood.domain.measuring.worker_stats import Window
from knowngood.health.fleet.service import Workers, load_workers
from knowngood.store.engine import Session
from knowngood.store.queries import load_last_event
from knowngood.web.html.grid import Choice
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API

router = APIRouter(include_in_schema=False)

WINDOW_WORDS = {Window.DAY: "24 hours", Window.WEEK: "7 days", Window.MONTH: "30 days"}


@router.get("/workers")
def workers(context: Context, window: Annotated[Window, Query()] = Window.WEEK) -> Response:
    def load(session: Session) -> tuple[Workers, Mapping[str, Issue], int]:
        known = context.known(session)
        return load_workers(session, known, window, context.now), known.issues, load_last_event(session)

    return context.answer(load, lambda found: _page(context, *found))


def _page(context: RequestContext, found: Workers, issues: Mapping[str, Issue], last: int) -> Response:
    """`last` is where the live stream goes on from, while anything moves."""
    is_moving = (
        any(one.doing for one in found.workers)
        or bool(found.held_by_none)
        or any(one.queued_jobs for one in found.classes)
    )
    return context.page(
        "workers.html",
        found,
        issues=issues,
        since=context.now - found.window.span,
        percent=percent,
        window=context.say(WINDOW_WORDS[found.window]),
        windows=[
            Choice(context.say(words), f"/workers?window={one}", one is found.window)
            for one, words in WINDOW_WORDS.items()
        ],
        live_address=f"{API}/events?after={last}" if is_moving else "",
    )


def percent(share: float) -> str:
    """`0 %` only where it was nothing at all, and never 100 where there was a gap."""
    if 0 < share < 0.01:  # noqa: PLR2004 - a hundredth
        return "< 1 %"
    return f"{int(share * 100)} %"
