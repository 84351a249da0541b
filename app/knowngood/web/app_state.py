"""The application's own for its life: its store, its caches and what it lets readers do. One value, which
`create_app` makes and everything that answers reads through `state_of`.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock, Semaphore
from time import monotonic
from typing import TypeVar, cast

from fastapi import FastAPI, Request, Response
from starlette.templating import Jinja2Templates

from knowngood.domain.errors import Busy, KnownGoodError
from knowngood.store.engine import Engine
from knowngood.store.knowledge.cache import KnowledgeCache
from knowngood.store.knowledge.model import Recorded
from knowngood.web.auth.principal import AccessPolicy
from knowngood.web.metrics.collector import Instruments
from knowngood.web.middleware.rate_limit import Buckets

Slice = TypeVar("Slice")

_AT_ONCE = 2
_WAITING = 30


@dataclass
class Streams:
    """The event streams that are open; changed by the event loop alone.

    A server that is asked to stop waits for its open answers, and a stream has no end of its own: it ends itself soon
    after `is_closing` is set (`server.end_streams`).
    """

    count: int = 0
    by_asker: Counter[str] = field(default_factory=Counter)
    is_closing: bool = False
    is_stopping: bool = False


StoredResponse = tuple[bytes, Mapping[str, str]]
"""The body of a complete answer, before compression, and its headers."""


class ResponseCache:
    """LRU cache of the answers made last, so that a page that many look at is made once.

    Its keys are an answer's ETag, which changes with the store's generation and with all else that an answer is made
    of, and the server's own address, which pages print in commands: an answer that is kept is as right as the copy that
    a browser is told to go on using.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._answers: OrderedDict[tuple[str, ...], StoredResponse] = OrderedDict()
        self._lock = Lock()

    def find(self, key: tuple[str, ...]) -> StoredResponse | None:
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
            return self._answers.get(key)

    def keep(self, key: tuple[str, ...], answer: StoredResponse) -> None:
        with self._lock:
            if key in self._answers or len(answer[0]) > self._most_bytes:
                return
            self._answers[key] = answer
            self._bytes += len(answer[0])
            while self._bytes > self._most_bytes:
                self._bytes -= len(self._answers.popitem(last=False)[1][0])


class Turns:
    """Answers that take long to make: two at a time, so that others find a processor, and each made once for all that
    wait for it.
    """

    def __init__(self) -> None:
        self._places = Semaphore(_AT_ONCE + _WAITING)
        self._turns = Semaphore(_AT_ONCE)
        self._making: dict[object, Lock] = {}
        self._lock = Lock()

    @contextmanager
    def take(self, key: object) -> Iterator[None]:
        """Raises Busy where too many wait already. A thread that waited for the same key may find it made."""
        if not self._places.acquire(blocking=False):
            raise Busy("too many long questions are being answered at once; ask again in a moment")
        try:
            with self._lock:
                made_by_one = self._making.setdefault(key, Lock())
            with made_by_one, self._turns:
                yield
        finally:
            with self._lock:
                self._making.pop(key, None)
            self._places.release()

    @property
    def is_full(self) -> bool:
        """Whether a further question would be refused."""
        if is_free := self._places.acquire(blocking=False):
            self._places.release()
        return not is_free


class Pulse:
    """Tells whether requests are still being answered; used by the event loop alone."""

    def __init__(self) -> None:
        self._begun: dict[int, float] = {}
        self._ended = 0.0

    @contextmanager
    def beat(self) -> Iterator[None]:
        """Around one request."""
        key = id(began := [monotonic()])
        self._begun[key] = began[0]
        try:
            yield
        finally:
            del self._begun[key]
            self._ended = monotonic()

    def silent_s(self) -> float:
        """Seconds that requests have waited without one being answered."""
        return monotonic() - max(self._ended, min(self._begun.values(), default=monotonic()))


@dataclass(frozen=True)
class StaticSite:
    """Pages that become files (`knowngood site`): the addresses that are among them, and the records beside cells,
    which the copy that they are read from lacks.
    """

    addresses: Container[str]
    recorded: Recorded


@dataclass(frozen=True)
class AppState:
    """`assets_version` changes with every release of templates and static files. `refuse` makes an answer of an error,
    for middleware, which stands outside of where exceptions become answers. `slices` has what single features keep.
    `site` is None where a server answers.
    """

    engine: Engine
    clock: Callable[[], datetime]
    templates: Jinja2Templates
    assets_version: str
    answers: ResponseCache
    knowledge: KnowledgeCache
    rules: AccessPolicy
    refuse: Callable[[Request, KnownGoodError], Response]
    buckets: Buckets
    results_buckets: Buckets
    instruments: Instruments
    site: StaticSite | None = None
    streams: Streams = field(default_factory=Streams)
    turns: Turns = field(default_factory=Turns)
    pulse: Pulse = field(default_factory=Pulse)
    slices: dict[type, object] = field(default_factory=dict)

    def own(self, kind: type[Slice]) -> Slice:
        """The one value of this type that a feature keeps for the application's life; made when first asked for."""
        return cast("Slice", self.slices.setdefault(kind, kind()))


def state_of(app: FastAPI) -> AppState:
    return cast("AppState", app.state.state)
