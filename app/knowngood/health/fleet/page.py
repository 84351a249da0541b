"""`/workers`: who measures, how busy it is, what a cell costs there, what it does now, and what nobody can measure."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Response

from knowngood.domain.measuring.worker_stats import Window, Worker
from knowngood.health.fleet.service import Working, load_working
from knowngood.store.queries import load_last_event
from knowngood.web.html.grid import Choice
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API

router = APIRouter(include_in_schema=False)

WINDOW_WORDS = {Window.DAY: "24 hours", Window.WEEK: "7 days", Window.MONTH: "30 days"}


@dataclass(frozen=True)
class WorkersPage:
    """Each of the `workers` with how busy it is; `seen` of them did something in the window. `live_address` is empty
    where nothing moves.
    """

    found: Working
    workers: tuple[tuple[Worker, str], ...]
    seen: int
    windows: tuple[Choice, ...]
    window: str
    live_address: str
    json_address: str


@router.get("/workers")
def workers(context: Context, window: Annotated[Window, Query()] = Window.WEEK) -> Response:
    return context.answer(
        lambda session: (
            load_working(session, context.known(session), window, context.now),
            load_last_event(session),
        ),
        lambda found: context.page("workers.html", workers_page(context, found[0], window, found[1])),
    )


def workers_page(context: RequestContext, found: Working, window: Window, last: int) -> WorkersPage:
    """`last` is where the live stream goes on from."""
    since = context.now - window.span
    is_moving = (
        any(one.doing for one in found.workers) or bool(found.idle) or any(one.queued_jobs for one in found.classes)
    )
    return WorkersPage(
        found=found,
        workers=tuple((one, percent(one.busy)) for one in found.workers),
        seen=sum(one.last_at >= since for one in found.workers),
        windows=tuple(
            Choice(context.say(words), f"/workers?window={one}", one is window) for one, words in WINDOW_WORDS.items()
        ),
        window=context.say(WINDOW_WORDS[window]),
        live_address=f"{API}/events?after={last}" if is_moving else "",
        json_address=f"{API}/workers?window={window}",
    )


def percent(share: float) -> str:
    """`0 %` only where it was nothing at all, and never 100 where there was a gap."""
    if 0 < share < 0.01:  # noqa: PLR2004 - a hundredth
        return "< 1 %"
    return f"{int(share * 100)} %"
