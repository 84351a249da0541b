"""How much one asker may ask for: requests in a time, and the size of a body."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from math import ceil
from threading import Lock

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.domain.errors import KnownGoodError

_KEPT = 10_000  # askers; at about 200 bytes each
_MOST_DIGITS = 15  # of a length; Python refuses to read thousands of them


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
    """Who an address stands for: of IPv6 one household has a whole /64."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    return str(int(address) >> 64) if isinstance(address, IPv6Address) else host


class BodyLimit:
    """Refuses bodies that say, or turn out, to be larger than `limit_of` their path in bytes."""

    def __init__(self, app: ASGIApp, limit_of: Callable[[str], int]) -> None:
        self.app = app
        self._limit_of = limit_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self._limit_of(scope["path"])
        said = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        is_large = said.isdigit() and (len(said) > _MOST_DIGITS or int(said) > limit)
        read = 0

        async def receive_some() -> Message:
            nonlocal read
            if is_large:
                raise TooLarge(limit)
            message = await receive()
            read += len(message.get("body", b""))
            if read > limit:
                raise TooLarge(limit)
            return message

        await self.app(scope, receive_some, send)
