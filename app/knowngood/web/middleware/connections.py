"""Connections as uvicorn has them, with an end: a head or a body that does not come is not waited for, nor a reader who
reads nothing, and of one address no more are open than a crowd behind it needs.

Where there is no room, that one goes of which nothing was asked for the longest; one that is being answered stays.
"""

import asyncio
import fcntl
import json
import resource
import sys
import termios
from collections.abc import Collection
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from knowngood.web.middleware.headers import HEADERS
from knowngood.web.middleware.rate_limit import asker_at

_LONGEST_HEAD = 64 << 10
_BODY_BYTES_PER_S = 16 << 10
_READ_BYTES = 16 << 10  # at once: whatever h11 does with them, others wait no longer
_FREE_CHUNKS, _CHUNK_BYTES = 1_000, 64
_MOST = 1_024
_SPARE_FILES = 128  # of the database, of bundles that come in, of counters


@cache
def most_connections() -> int:
    """How many this process has room for, once it may open as many files as its host lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST + _SPARE_FILES
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(_MOST, max(soft - _SPARE_FILES, soft // 2))


class _Chunks(h11.Connection):
    """Refuses a body in tiny chunks: reading each costs a thousand times what it brings."""

    _chunks = _bytes = 0

    def next_event(self) -> Any:  # noqa: ANN401 - as h11 has it
        event = super().next_event()
        if isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            self._bytes += len(event.data)
            if self._chunks > _FREE_CHUNKS + self._bytes // _CHUNK_BYTES:
                raise h11.RemoteProtocolError("a body in tiny chunks")
        elif isinstance(event, h11.Request):
            self._chunks = self._bytes = 0
        return event


class Connection(H11Protocol):
    """`since` is when that began which is waited for: a head, a body, or that anything is asked. A body has `body_s` to
    come, and longer by what has come. An answer waits `unread_s` for a reader who takes nothing; `unread_since` is when
    they were last seen to take something.
    """

    head_s, body_s, unread_s, look_every_s = 10.0, 20.0, 60.0, 1.0
    most_of_one = 256
    asker = ""
    since = unread_since = 0.0
    _received = _unread = 0
    _waits_for: object = h11.IDLE
    _timer: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, **more: Any) -> None:  # noqa: ANN401 - whatever uvicorn gives
        super().__init__(*args, **more)
        self.conn = _Chunks(h11.SERVER, _LONGEST_HEAD)

    # -- what the transport tells --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        with suppress(AttributeError):  # asyncio's own transports of sockets have it
            transport.max_size = _READ_BYTES  # type: ignore[attr-defined]
        self.since = self.now()
        self._timer = self.loop.call_later(self.look_every_s, self._look)
        host = self.client[0] if self.client else ""
        self.asker = asker_at(host)
        there = cast("Collection[Connection]", self.connections)
        theirs = [connection for connection in there if connection.asker == self.asker]
        if len(theirs) > self.most_of_one and not self._speaks_for_many(host):
            self._make_room(theirs)
        elif len(there) > most_connections():
            self._make_room(there)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._has_turned():
            self._received += len(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer:
            self._timer.cancel()
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.unread_since = self.now()

    # -- room ----------------------------------------------------------------------------------------------------------

    def _speaks_for_many(self, host: str) -> bool:
        """A proxy that is trusted (FORWARDED_ALLOW_IPS), or a socket that is a file."""
        return not host or host in getattr(self.config.loaded_app, "trusted_hosts", ())

    def _make_room(self, among: Collection["Connection"]) -> None:
        """Drop the connection that has waited longest; where all are being answered, this one."""
        waiting = [connection for connection in among if connection.is_waiting and connection is not self]
        min(waiting, key=lambda connection: connection.since, default=self).drop()

    @property
    def is_waiting(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete or self.conn.their_state is h11.SEND_BODY

    def drop(self) -> None:
        self.connections.discard(self)
        self.transport.abort()

    # -- time ----------------------------------------------------------------------------------------------------------

    def now(self) -> float:
        return self.loop.time()

    def _look(self) -> None:
        self._timer = self.loop.call_later(self.look_every_s, self._look)
        now = self.now()
        self._look_at_reader(now)
        if now - self.unread_since > self.unread_s:
            self.drop()
        elif self._has_turned():  # uvicorn begins with what came behind a request once that one is answered
            return
        elif self._waits_for is h11.IDLE and not self._unread and now - self.since > self.head_s:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, f"the head of a request has {self.head_s:g} s to come")
        elif self._waits_for is h11.SEND_BODY:
            self._look_at_body(now)

    def _has_turned(self) -> bool:
        """Whether another part of a request is waited for than before; its time begins now."""
        if self.conn.their_state is self._waits_for:
            return False
        self._waits_for, self.since, self._received = self.conn.their_state, self.now(), 0
        return True

    def _look_at_reader(self, now: float) -> None:
        before, self._unread = self._unread, self._count_unread()
        if not 0 < before <= self._unread:
            self.unread_since = now

    def _count_unread(self) -> int:
        """Bytes of answers that wait here, and where some do those in the system's own buffer, of which a third must be
        taken before it takes more: megabytes, for which a slow reader needs minutes.
        """
        here = self.transport.get_write_buffer_size()
        if not here:
            return 0
        sent = fcntl.ioctl(self.transport.get_extra_info("socket"), termios.TIOCOUTQ, bytes(4))
        return here + int.from_bytes(sent, sys.byteorder)

    def _look_at_body(self, now: float) -> None:
        if self.flow.read_paused:
            self.since += self.look_every_s  # it is we who do not read
        elif now - self.since > self.body_s + self._received / _BODY_BYTES_PER_S:
            detail = f"a body has {self.body_s:g} s to come, and a second more for every {_BODY_BYTES_PER_S >> 10} KiB"
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, detail)

    # -- refusals before any application is asked ----------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """uvicorn's name for its answer to what is no HTTP."""
        if len(self.conn.trailing_data[0]) > _LONGEST_HEAD:
            detail = f"the head is longer than {_LONGEST_HEAD >> 10} KiB; send a long list as a body"
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, detail)
        else:
            self._refuse(
                HTTPStatus.BAD_REQUEST, f"{msg} A body comes whole or in chunks of at least {_CHUNK_BYTES} bytes."
            )

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """A problem, as everywhere; where an answer has begun, an end without one."""
        body = json.dumps({"type": "about:blank", "title": status.phrase, "status": status, "detail": detail}).encode()
        headers = {**HEADERS, "Content-Type": "application/problem+json", "Content-Length": str(len(body))}
        response = h11.Response(status_code=status, headers=[*headers.items(), ("Connection", "close")])
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle:
            cycle.disconnected = True
        try:
            events = (response, h11.Data(body), h11.EndOfMessage())
            self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        except h11.LocalProtocolError:
            self.drop()
        else:
            self.transport.close()
