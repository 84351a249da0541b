"""`/api/v1/runs`: what was asked to be measured, newest first. `/api/v1/events`: what happens, as server-sent events.

The table of events is asked again and again, which works on every database and across processes. A reader that comes
back says where it was (`Last-Event-ID`) and misses nothing. Each event's `data` is an EventRow as JSON.
"""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Annotated

import anyio
from anyio import to_thread
from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import AfterValidator, Field, TypeAdapter
from starlette.responses import StreamingResponse

from knowngood.domain.errors import Busy
from knowngood.matrix.lookups import find_run
from knowngood.matrix.overview.selection import Names, Words
from knowngood.store.engine import Session, reading
from knowngood.store.jobs.durations import load_time_left
from knowngood.store.queries import EventRow, RunRow, load_events, load_last_event, load_runs
from knowngood.web.app_state import AppState, state_of
from knowngood.web.errors import InvalidParameter
from knowngood.web.json_body import Body, fields_of, read_from
from knowngood.web.middleware.rate_limit import TooMany, asker_at
from knowngood.web.pagination import Paging, answer, in_parts, newest_after, next_of, one_of
from knowngood.web.request_context import Context
from knowngood.web.urls import run_address

router = APIRouter()


@fields_of(RunRow)
class RunBody(Body):
    """`request` is what was asked for, as the asker put it."""

    url: Annotated[str, AfterValidator(run_address)] = read_from("id")


class RunDetailBody(RunBody):
    """`left_s` is about how many seconds it still takes (null: it is over, or no arm has ended yet)."""

    left_s: float | None = None


class RunsBody(Body):
    """Newest first. `next` is the address of older runs (null: there are none)."""

    runs: list[RunBody]
    next: str | None = None


class RunsQuery(Paging):
    fields: Annotated[Names, one_of(RunBody.model_fields), Field(description="Only these fields of each run")]


@router.get("/runs", response_model=in_parts(RunsBody, "runs"), tags=["runs"])
def runs(context: Context, query: Annotated[RunsQuery, Query()]) -> Response:
    """The newest runs, 100 where no limit is given."""
    after = newest_after(context.request, query.cursor)

    def show(rows: Sequence[RunRow]) -> Response:
        shown, next_ = next_of(context.request, rows, query.most, lambda run: (run.created_at, run.id))
        body = RunsBody(runs=[RunBody.of(run) for run in shown], next=next_)
        return answer(context, body, "runs", query.fields, next_, is_paged=True)

    return context.answer(lambda session: load_runs(session, query.most + 1, after=after), show)


@router.get("/runs/{run}", response_model=RunDetailBody, tags=["runs"])
def run(context: Context, run: str) -> Response:
    """One run with its jobs, and the time that it still takes."""

    def load(session: Session) -> tuple[RunRow, float | None]:
        row = find_run(session, run)
        return row, load_time_left(session, row, context.now)

    def show(loaded: tuple[RunRow, float | None]) -> Response:
        return context.json(RunDetailBody.of(loaded[0]).model_copy(update={"left_s": loaded[1]}))

    return context.answer(load, show)


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
    """The event id to go on from. A reader that comes back sends an id that we sent: anything else is not ours."""
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
            new_events = load_events(session, self.after, self.run or None, _AT_ONCE)
        if new_events:
            self.after = new_events[-1].id
        return new_events


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
@router.get("/events", tags=["events"], response_class=StreamingResponse, responses={200: {"content": {MEDIA: _SHAPE}}})
async def events(follower: Annotated[Following, Depends(following)]) -> StreamingResponse:
    """Events as they happen, as server-sent events; `Last-Event-ID` goes on where a reader left off."""
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(_stream(follower), media_type=MEDIA, headers=headers)


async def _stream(follower: Following) -> AsyncIterator[bytes]:
    """Poll until the run is over or the reader goes. Send `: ping` now and then, so that proxies stay connected."""
    streams = follower.state.streams
    streams.count += 1
    streams.by_asker[follower.asker] += 1
    quiet_s = 0.0
    try:
        while not streams.is_closing:
            new_events = await to_thread.run_sync(follower.next_events)
            if new_events:
                yield b"".join(
                    format_sse_event(data_str=_EVENT.dump_json(event).decode(), id=str(event.id))
                    for event in new_events
                )
            follower.is_over = follower.is_over or (
                bool(follower.run) and any(event.kind == "run_finished" for event in new_events)
            )
            if follower.is_over and not new_events:
                return
            quiet_s = 0.0 if new_events else quiet_s + _POLL_S
            if quiet_s >= _PING_S:
                quiet_s = 0.0
                yield KEEPALIVE_COMMENT
            if len(new_events) < _AT_ONCE:
                await anyio.sleep(_POLL_S)
    finally:
        streams.count -= 1
        streams.by_asker[follower.asker] -= 1
        streams.by_asker += Counter()  # forgets who has none
