"""How much one asker may ask for: requests in a time, and bodies by their size, at once and by what they hold."""

import gc
import time
from asyncio import get_running_loop
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from math import ceil
from threading import Lock

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from knowngood.domain.errors import KnownGoodError
from knowngood.web.middleware import HttpMiddleware
from knowngood.web.middleware.request_bodies import BadBody, look_at

_KEPT = 10_000  # askers; at about 200 bytes each
_MOST_DIGITS = 15  # of a length; Python refuses to read thousands of them
_MOST_HELD = 96 << 20
_OWN_ROOM = 64 << 10
_MUCH_FREED = 16 << 20  # an exception and its traceback are a cycle, which may hold a body of 8 MiB


class TooMany(KnownGoodError):
    """More requests than this server takes from one asker; `wait_s` is when the next one is taken."""

    def __init__(self, message: str, wait_s: int) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class TooLarge(HTTPException):
    """A body beyond the limit. FastAPI passes only its own kind of exception through while it reads a body."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than the {limit / (1 << 20):g} MiB taken here"
        )


class TooMuch(HTTPException):
    """Bodies are being read whose bytes come to the most that is held at once."""

    def __init__(self, status: HTTPStatus, most: int) -> None:
        whose = "of yours" if status is HTTPStatus.TOO_MANY_REQUESTS else "of all readers"
        detail = f"bodies {whose} that are being read come to {most >> 20} MiB, the most here; send this one after them"
        super().__init__(status, detail, {"Retry-After": "10"})


@dataclass
class _Bucket:
    left: float
    at: float


class Buckets:
    """A token bucket for each asker: `burst` requests at once, `per_s` of them coming back each second.

    In this process alone, and for the askers seen last: a server of several processes takes as many times more.
    A forgotten asker begins with a full bucket, so memory is bounded and nobody is refused for want of it.
    """

    def __init__(self, per_s: float, burst: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._burst = burst
        self._monotonic = monotonic
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, asker: str) -> None:
        """Count one request. Raises TooMany, and then it is not counted."""
        if self._per_s <= 0:
            return
        with self._lock:
            self._refuse_empty(self._filled(asker)).left -= 1

    def look(self, asker: str) -> None:
        """Raises TooMany where the next one would not be taken; counts nothing."""
        if asker in self._buckets:
            with self._lock:
                self._refuse_empty(self._filled(asker))

    def _refuse_empty(self, bucket: _Bucket) -> _Bucket:
        if bucket.left < 1:
            wait_s = max(1, ceil((1 - bucket.left) / self._per_s))
            raise TooMany(f"too many requests at once; wait {wait_s} s before the next one", wait_s)
        return bucket

    def _filled(self, asker: str) -> _Bucket:
        now = self._monotonic()
        bucket = self._buckets.setdefault(asker, _Bucket(self._burst, now))
        bucket.left = min(self._burst, bucket.left + (now - bucket.at) * self._per_s)
        bucket.at = now
        self._buckets.move_to_end(asker)
        if len(self._buckets) > _KEPT:
            self._buckets.popitem(last=False)
        return bucket


def asker_at(host: str) -> str:
    """Name the asker behind an address: of IPv6 one household has a whole /64."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    return str(int(address) >> 64) if isinstance(address, IPv6Address) else host


class BytesInFlight:
    """Bytes of bodies that are being read or answered in this process. Each body has some room of its own besides, so
    that small questions are answered while large ones wait.
    """

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._by_asker: Counter[str] = Counter()
        self._freed = 0

    def add(self, asker: str, count: int) -> None:
        """Raises TooMuch, and then nothing is added."""
        if self._by_asker[asker] + count > self._most_of_one:
            raise TooMuch(HTTPStatus.TOO_MANY_REQUESTS, self._most_of_one)
        if self._by_asker.total() + count > self._most:
            raise TooMuch(HTTPStatus.SERVICE_UNAVAILABLE, self._most)
        self._by_asker[asker] += count

    def free(self, asker: str, count: int) -> None:
        self._by_asker[asker] -= count
        if not self._by_asker[asker]:
            del self._by_asker[asker]
        if self._freed < _MUCH_FREED <= self._freed + count:
            get_running_loop().call_later(1, self._collect)  # by then the last of them is answered
        self._freed += count

    def _collect(self) -> None:
        self._freed = 0
        gc.collect()


class Bodies(HttpMiddleware):
    """Refuses bodies that say, or turn out, to be larger than `limit_of` their path in bytes, or to hold what is read
    nowhere here. They are handed on whole, but for those of the `streamed` paths.
    """

    def __init__(
        self, app: ASGIApp, limit_of: Callable[[str], int], streamed: Collection[str], held: BytesInFlight | None = None
    ) -> None:
        super().__init__(app)
        self._limit_of = limit_of
        self._streamed = streamed
        self._held = held or BytesInFlight(_MOST_HELD, _MOST_HELD // 3)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = _Body(scope, receive, self._limit_of(scope["path"]), self._held)
        is_streamed = scope["path"] in self._streamed
        try:
            await self.app(scope, body.some if is_streamed else body.whole, send)
        finally:
            body.free()


class _Body:
    """The body of one request."""

    def __init__(self, scope: Scope, receive: Receive, limit: int, held: BytesInFlight) -> None:
        self._kind = next((value for name, value in scope["headers"] if name == b"content-type"), b"").decode("latin-1")
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        self._is_large = length.isdigit() and (len(length) > _MOST_DIGITS or int(length) > limit)
        self._is_expected = length != b"0" or any(name == b"transfer-encoding" for name, _ in scope["headers"])
        self._receive = receive
        self._limit = limit
        self._held = held
        self._asker = asker_at(scope["client"][0] if scope.get("client") else "")
        self._read = 0
        self._counted = 0
        self._is_whole = False

    async def some(self) -> Message:
        if self._is_large:
            raise TooLarge(self._limit)
        message = await self._receive()
        self._read += len(message.get("body", b""))
        if self._read > self._limit:
            raise TooLarge(self._limit)
        return message

    async def whole(self) -> Message:
        if self._is_whole:
            return await self._receive()
        pieces: list[bytes] = []
        is_more = True
        while is_more:
            message = await self.some()
            if message["type"] == "http.disconnect":
                if not self._is_expected:
                    return message
                raise BadBody("did not come to its end", HTTPStatus.BAD_REQUEST)
            self._count(max(0, self._read - _OWN_ROOM) - self._counted)
            pieces.append(message.get("body", b""))
            is_more = message.get("more_body", False)
        self._is_whole = True
        body = b"".join(pieces)
        if body:
            look_at(self._kind, body)
        return {"type": "http.request", "body": body, "more_body": False}

    def _count(self, more: int) -> None:
        if more:
            self._held.add(self._asker, more)
            self._counted += more

    def free(self) -> None:
        if self._counted:
            self._held.free(self._asker, self._counted)
