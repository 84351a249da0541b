"""The application's own for its life: its store, its caches and what it lets readers do. One value, which
`create_app` makes and everything that answers reads through `state_of`.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import TypeVar, cast

from fastapi import FastAPI, Request, Response
from starlette.templating import Jinja2Templates

from knowngood.app.domain.errors import KnownGoodError
from knowngood.app.knowledge.cache import KnowledgeCache
from knowngood.app.knowledge.known_cache import KnownCache
from knowngood.app.knowledge.model import Recorded
from knowngood.app.store.engine import Engine
from knowngood.app.web.auth.principal import AccessPolicy
from knowngood.app.web.metrics.collector import Instruments
from knowngood.app.web.middleware.rate_limit import Buckets

Slice = TypeVar("Slice")


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


@dataclass(frozen=True)
class StoredResponse:
    """A complete answer, before compression."""

    body: bytes
    headers: Mapping[str, str]


class ResponseCache:
    """LRU cache of the answers made last, so that a page that many look at is made once.

    Its keys are an answer's ETag, which changes with the store's generation and with all else that an answer is made
    of, and the server's own address, which pages print in commands: an answer that is kept is as right as the copy that
    a browser is told to go on using.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[tuple[str, ...], StoredResponse] = OrderedDict()
        self._lock = Lock()

    def find(self, key: tuple[str, ...]) -> StoredResponse | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, key: tuple[str, ...], answer: StoredResponse) -> None:
        with self._lock:
            if key in self._kept or len(answer.body) > self._most_bytes:
                return
            self._kept[key] = answer
            self._bytes += len(answer.body)
            while self._bytes > self._most_bytes:
                self._bytes -= len(self._kept.popitem(last=False)[1].body)


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
    cells: KnownCache = field(default_factory=KnownCache)
    slices: dict[type, object] = field(default_factory=dict)

    def own(self, kind: type[Slice]) -> Slice:
        """The one value of this type that a feature keeps for the application's life; made when first asked for."""
        return cast("Slice", self.slices.setdefault(kind, kind()))


def state_of(app: FastAPI) -> AppState:
    state: AppState = app.state.state
    return state
