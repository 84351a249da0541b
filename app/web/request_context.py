"""What one request brings along: the time, the reader's language and theme, and the one reading of the store.

A page opens the store through `Visit.reading`, which answers 304 before any other query where the reader's copy is
still right, or gives the copy that is kept here, and answers through `Visit.page` or `Visit.json`, which keep one and
send the tag for the next time.
"""

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from threading import Lock
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Depends, Request, Response
from pydantic import BaseModel
from starlette.templating import Jinja2Templates

from knowngood.app.domain.verdicts.known import Known
from knowngood.app.features.diagnose.service import Recogniser
from knowngood.app.knowledge.cache import KnowledgeCache
from knowngood.app.knowledge.known_cache import KnownCache
from knowngood.app.knowledge.loader import KnowledgeSnapshot
from knowngood.app.store.engine import Engine, Session, reading
from knowngood.app.store.queries import load_generation
from knowngood.app.web.auth.principal import AccessPolicy, principal_of
from knowngood.app.web.errors import REVALIDATE, REVALIDATE_PRIVATE, CachedResponse, NotModified, StoredResponse
from knowngood.app.web.html import i18n
from knowngood.app.web.html.i18n import Language
from knowngood.app.web.metrics.collector import Instruments
from knowngood.app.web.middleware.rate_limit import Buckets
from knowngood.app.web.urls import API

LANGUAGE_COOKIE = "lang"
THEME_COOKIE = "theme"
BUILD_COOKIE = "build"
THEMES = ("light", "dark")

_LONGEST_BUILD = 100

FEEDS, BADGES = "/feeds/", "/badge/"


@dataclass
class Streams:
    """The event streams that are open; changed by the event loop alone.

    A server that is asked to stop waits for its open answers, and a stream has no end of its own: it ends itself soon
    after `is_closing` is set (`application.end_streams`).
    """

    count: int = 0
    by_asker: Counter[str] = field(default_factory=Counter)
    is_closing: bool = False
    is_stopping: bool = False


class ResponseCache:
    """The answers made last, so that a page that many look at is made once.

    They are kept by their tag, which changes with the store's generation and with all else that an answer is made of:
    one that is kept is as right as the copy that a browser is told to go on using.
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
class AppState:
    """The application's own for its life. `assets_version` changes with every release of templates and static files."""

    engine: Engine
    clock: Callable[[], datetime]
    templates: Jinja2Templates
    assets_version: str
    streams: Streams
    answers: ResponseCache
    knowledge: KnowledgeCache
    rules: AccessPolicy
    buckets: Buckets
    recogniser: Recogniser = field(default_factory=Recogniser)
    cells: KnownCache = field(default_factory=KnownCache)
    instruments: Instruments = field(default_factory=Instruments)


class RequestContext:
    """One request. `now` is the same for all of it."""

    def __init__(self, request: Request, state: AppState) -> None:
        self.request = request
        self.now = state.clock()
        self.principal = principal_of(request)
        self.language = _language(request)
        self.theme = _theme(request)
        self.state = state
        self._etag: str | None = None

    @contextmanager
    def reading(self, *more: str) -> Iterator[Session]:
        """The store as it is now; NotModified where the reader has that already, MadeBefore where another reader does.

        The generation is read first in the transaction that the answer is made in, so the tag fits what is made.
        `more` is what else the answer is made of, beside the address and the reader's language and theme.
        """
        with reading(self.state.engine) as session:
            self._etag = self._tag(load_generation(session), *more)
            if _holds(self.request.headers.get("If-None-Match", ""), self._etag):
                raise NotModified(self._caching())
            made = self.state.answers.find((self._etag, self.base))
            if made is not None:
                raise CachedResponse(made)
            yield session

    def known(self, session: Session) -> Known:
        """What is known as of the transaction that `session` is in."""
        return self.state.cells.load(session, self.now)

    def knowing(self, asked: bytes = b"") -> KnowledgeSnapshot:
        """What the gate knows, from memory; NotModified and MadeBefore as above. `asked` is the body that came along.

        A decision says when it was made, so its copy is right for a minute.
        """
        snapshot = self.state.knowledge.now()
        self.look_up(snapshot, asked)
        return snapshot

    def look_up(self, snapshot: KnowledgeSnapshot, asked: bytes = b"") -> None:
        """Raises NotModified or MadeBefore where the gate's answer to this question, given what is known, is there."""
        self._etag = self._tag(snapshot.generation, f"{self.now:%H:%M}", asked)
        if self.request.method != "POST" and _holds(self.request.headers.get("If-None-Match", ""), self._etag):
            raise NotModified(self._caching())
        made = self.state.answers.find((self._etag, self.base))
        if made is not None:
            raise CachedResponse(made)

    def _tag(self, generation: int, *more: str | bytes) -> str:
        """Pages say "3 min ago", which is right for a minute; JSON has only the staleness of a day."""
        is_page = not self.request.url.path.startswith((API, FEEDS, BADGES))
        until = f"{self.now:%Y-%m-%d %H:%M}" if is_page else f"{self.now:%Y-%m-%d}"
        whose = (self._is_private, self.principal.name if is_page else "")
        parts = (generation, self.state.assets_version, self.address, self.language, self.theme, until, whose, *more)
        return f'W/"{hashlib.sha256(repr(parts).encode()).hexdigest()[:24]}"'

    @property
    def last_build(self) -> str:
        """The build that this reader chose last, as they said it; empty: none. Only pages that ask for it differ by it,
        and they give it to `reading`.
        """
        return self.request.cookies.get(BUILD_COOKIE, "")[:_LONGEST_BUILD]

    @property
    def address(self) -> str:
        """Path and query as asked for: what a reader can copy, and where preferences lead back to."""
        query = self.request.url.query
        return f"{self.request.url.path}?{query}" if query else self.request.url.path

    @property
    def base(self) -> str:
        """Where this server is reached, for commands that a reader pastes."""
        return str(self.request.base_url).rstrip("/")

    def page(self, template: str, body: object, status: int = 200) -> Response:
        response = self.state.templates.TemplateResponse(
            self.request, template, {"page": body, "context": self, "t": self.say}, status_code=status
        )
        response.headers.update(self._caching())
        return self._kept(response)

    def json(
        self, body: BaseModel, *, include: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """`include` leaves all else out, as pydantic does."""
        text = body.model_dump_json(include=dict(include) if include else None)
        return self._kept(Response(text, media_type="application/json", headers={**self._caching(), **(headers or {})}))

    def ruling(self, body: str, media: str, headers: Mapping[str, str]) -> Response:
        """A decision in whatever form it was asked for."""
        return self._kept(Response(body, media_type=media, headers={**self._caching(), **headers}))

    def _kept(self, response: Response) -> Response:
        """Beside the tag the server's own address counts: pages print commands that hold it."""
        if self._etag and response.status_code == HTTPStatus.OK:
            headers = {name: value for name, value in response.headers.items() if name != "content-length"}
            self.state.answers.keep((self._etag, self.base), StoredResponse(bytes(response.body), headers))
        return response

    def text(self, body: str | bytes, media: str, file_name: str) -> Response:
        """A download: evidence as it is stored."""
        headers = {"Content-Disposition": f'inline; filename="{file_name}"', **self._caching()}
        return Response(body, media_type=media, headers=headers)

    def attached(self, file_name: str) -> dict[str, str]:
        """Headers of a file to keep. Such answers are not kept here: one of them would push out many pages."""
        return {"Content-Disposition": f'attachment; filename="{file_name}"', **self._caching()}

    def _caching(self) -> dict[str, str]:
        if self.request.method == "POST":
            return {"Cache-Control": "no-store"}
        if self._etag is None:
            return {"Cache-Control": "no-store"} if self._is_private else {}
        return {"ETag": self._etag, **(REVALIDATE_PRIVATE if self._is_private else REVALIDATE)}

    @property
    def _is_private(self) -> bool:
        """Whether not everybody may see this: reads are closed, or a page says who is signed in."""
        return self.state.rules.reads_need_token or self.principal.token is not None

    def say(self, text: str, **values: object) -> str:
        return i18n.say(text, self.language, **values)

    def ago(self, then: datetime) -> str:
        return i18n.ago(then, self.now, self.language)

    def in_language(self, english: str, chinese: str) -> str:
        """An issue's own words: the Chinese twin where the reader asks for it. A text that has none yet says so."""
        if self.language is not Language.CHINESE or not english:
            return english
        if chinese:
            return chinese
        between = "\n\n" if "\n" in english.strip() else " "  # a fence of Markdown ends on a line of its own
        return f"{english.rstrip()}{between}{self.say('(not in Chinese yet)')}"

    @property
    def other_language(self) -> Language:
        return Language.ENGLISH if self.language is Language.CHINESE else Language.CHINESE

    def preferring(self, **preference: str) -> str:
        """The address that keeps a preference and leads back here."""
        return f"/preferences?{urlencode({**preference, 'to': self.address})}"


def _language(request: Request) -> Language:
    """An address may ask for a language (`?lang=zh`, so that links can be shared); else the reader's own choice."""
    asked = request.query_params.get("lang") or request.cookies.get(LANGUAGE_COOKIE)
    return Language.CHINESE if asked == Language.CHINESE else Language.ENGLISH


def _theme(request: Request) -> str:
    """`light` or `dark` where the reader chose one; empty: as the system is set."""
    chosen = request.cookies.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else ""


def _holds(header: str, etag: str) -> bool:
    """If-None-Match compares weakly: proxies may have added or taken the `W/`."""
    tags = {tag.strip().removeprefix("W/") for tag in header.split(",")}
    return etag.removeprefix("W/") in tags


def context_of(request: Request) -> RequestContext:
    return RequestContext(request, request.app.state.state)


async def _visit(request: Request) -> RequestContext:
    """Waits for nothing, so it need not cost a thread."""
    return context_of(request)


Context = Annotated[RequestContext, Depends(_visit)]
