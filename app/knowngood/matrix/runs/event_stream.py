"""`/api/v1/events`: what happens, as server-sent events.

The table of events is asked again and again, which works on every database and across processes. A reader that comes
back says where it was (`Last-Event-ID`) and misses nothing. Each event's `data` is an EventRow as JSON.
"""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated

import anyio
from anyio import to_thread
from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import TypeAdapter
from starlette.responses import StreamingResponse

from knowngood.domain.errors import Busy
from knowngood.matrix.lookups import find_run
from knowngood.matrix.overview.selection import Words
from knowngood.store.engine import reading
from knowngood.store.queries import EventRow, load_events, load_last_event
from knowngood.web.app_state import AppState, state_of
from knowngood.web.errors import InvalidParameter
from knowngood.web.middleware.rate_limit import TooMany, asker_at

router = APIRouter(tags=["events"])

MEDIA = "text/event-stream"
_EVENT = TypeAdapter(EventRow)
_SHAPE = {
    "schema": {
        "type": "string",
        "description": "Events whose data is a JSON object each: id, at, kind, run, and data, which goes with the kind",
    }
}

_POLL_S = 1.0
_PING_S = 15.0
_AT_ONCE = 200
_LAST_ID = 2**63 - 1  # of what both databases count
_MOST_STREAMS, _MOST_OF_ONE = 100, 20  # each asks the database once a second


def _after(last_event_id: str) -> int:
    """A reader that comes back sends the id that we sent: anything else is not from here."""
    if not (last_event_id.isascii() and last_event_id.isdigit()) or int(last_event_id) > _LAST_ID:
        raise InvalidParameter("is no id of an event", "Last-Event-ID")
    return int(last_event_id)


class Following:
    """Where one stream stands: the events of `run` (empty: of all) after `after`."""

    def __init__(self, state: AppState, asker: str, run: str, after: int, *, is_over: bool) -> None:
        self.state = state
        self.asker = asker
        self.run = run
        self.after = after
        self.is_over = is_over

    def next_events(self) -> tuple[EventRow, ...]:
        with reading(self.state.engine) as session:
            found = load_events(session, self.after, self.run or None, _AT_ONCE)
        if found:
            self.after = found[-1].id
        return found


def following(
    request: Request,
    run: Annotated[Words, Query(description="Only the events of this run; the stream then ends with it")] = "",
    after: Annotated[
        int | None, Query(ge=0, le=_LAST_ID, description="Only events after this one; none means from now on")
    ] = None,
    last_event_id: Annotated[str, Header(max_length=40)] = "",
) -> Following:
    """Checked before the stream begins, so that a refusal is still a problem with its status."""
    state = state_of(request.app)
    if state.streams.count >= _MOST_STREAMS:
        raise Busy(f"{_MOST_STREAMS} event streams are open already; ask /api/v1/runs instead")
    asker = asker_at(request.client.host if request.client else "")
    if state.streams.by_asker[asker] >= _MOST_OF_ONE:
        raise TooMany(
            f"{_MOST_OF_ONE} event streams are open from your address already; close one, or ask /api/v1/runs", 10
        )
    with reading(state.engine) as session:
        is_over = bool(run) and find_run(session, run).finished_at is not None
        start = _after(last_event_id) if last_event_id else after
        return Following(state, asker, run, load_last_event(session) if start is None else start, is_over=is_over)


# FastAPI's own event route ends in a logged exception whenever a reader leaves with events on their way (measured with
# 0.165: the pipe between its producer and its keep-alive breaks), so the stream is written here.
@router.get("/events", response_class=StreamingResponse, responses={200: {"content": {MEDIA: _SHAPE}}})
async def events(follower: Annotated[Following, Depends(following)]) -> StreamingResponse:
    """Events as they happen, as server-sent events; `Last-Event-ID` goes on where a reader left off."""
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(_stream(follower), media_type=MEDIA, headers=headers)


async def _stream(follower: Following) -> AsyncIterator[bytes]:
    """Polls until the run is over or the reader goes. Says `: ping` now and then, so that proxies keep the line."""
    streams = follower.state.streams
    streams.count += 1
    streams.by_asker[follower.asker] += 1
    quiet_s = 0.0
    try:
        while not streams.is_closing:
            found = await to_thread.run_sync(follower.next_events)
            if found:
                yield b"".join(
                    format_sse_event(data_str=_EVENT.dump_json(event).decode(), id=str(event.id)) for event in found
                )
            follower.is_over = follower.is_over or _ends(follower.run, found)
            if follower.is_over and not found:
                return
            quiet_s = 0.0 if found else quiet_s + _POLL_S
            if quiet_s >= _PING_S:
                quiet_s = 0.0
                yield KEEPALIVE_COMMENT
            if len(found) < _AT_ONCE:
                await anyio.sleep(_POLL_S)
    finally:
        streams.count -= 1
        streams.by_asker[follower.asker] -= 1
        streams.by_asker += Counter()  # forgets who has none


def _ends(run: str, found: tuple[EventRow, ...]) -> bool:
    return bool(run) and any(event.kind == "run_finished" for event in found)
