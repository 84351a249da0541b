"""The context of one request: the time, the reader's language and theme, and the one reading of the store.

A route hands `RequestContext.answer` two functions, one that reads the store and one that makes a response of what was
read. Where the reader's copy is still right the answer is 304, and where one is in the response cache, that one: either
costs a single query, and neither function is called. Responses made by `page` and `json` are kept, and carry the tag
for the next time.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from http import HTTPStatus
from typing import Annotated, Any, TypeVar, cast
from urllib.parse import urlencode

from fastapi import Depends, Request, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup
from pydantic import TypeAdapter

from knowngood.domain.issue import Issue, Left
from knowngood.domain.message import Message
from knowngood.domain.verdicts.known import Known
from knowngood.store.engine import Session, reading
from knowngood.store.knowledge.loader import KnowledgeSnapshot
from knowngood.store.queries import load_generation
from knowngood.web.app_state import AppState, state_of
from knowngood.web.auth.principal import principal_of
from knowngood.web.html import i18n
from knowngood.web.html.grid import Choice
from knowngood.web.html.i18n import Language, as_text, in_words
from knowngood.web.my_build import MY_BUILD, NOBODYS, YEAR_S, read_my_build
from knowngood.web.urls import API

Loaded = TypeVar("Loaded")

LANGUAGE_COOKIE = "lang"
THEME_COOKIE = "theme"
THEMES = ("light", "dark")

FEEDS, BADGES = "/feeds/", "/badge/"
_CODE_ALONE = re.compile(r"\s*```[^`]*```\s*")  # says the same in any language

_adapter_of: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)

# Keep a copy, but ask before showing it again: the answer is a 304 after one query.
_REVALIDATE = "no-cache"

# The same for what not everybody may read: a cache that several people share keeps nothing of it.
_REVALIDATE_PRIVATE = "private, no-cache"


class RequestContext:
    """One request. `now` is the same for all of it. `mine` is the reader's own build, which pages alone ask for."""

    def __init__(self, request: Request, state: AppState) -> None:
        self.request = request
        self.now = state.clock()
        self.principal = principal_of(request)
        self.is_page = not request.url.path.startswith((API, FEEDS, BADGES))
        self.mine = read_my_build(request) if self.is_page else NOBODYS
        self.language = _language(request, is_page=self.is_page)
        self.theme = _theme(request)
        self.state = state
        self._etag = ""

    def answer(self, load: Callable[[Session], Loaded], show: Callable[[Loaded], Response], *more: str) -> Response:
        """A response that `show` makes of what `load` reads, unless the reader or the response cache has it already.

        The generation is read first in the transaction that `load` reads in, so the tag fits what is made. `show` is
        called when that transaction is over: it takes no connection from others. `more` is what else the answer is made
        of, beside the address and the reader's language and theme.
        """
        with reading(self.state.engine) as session:
            response = self.stored(load_generation(session), *more)
            loaded = None if response else load(session)
        return response or show(cast("Loaded", loaded))

    def answer_in_turn(
        self, load: Callable[[Session], Loaded], show: Callable[[Loaded], Response], *more: str
    ) -> Response:
        """`answer` for what takes long: in its turn, and once for all who ask the same. Raises Busy."""
        with reading(self.state.engine) as session:
            response = self.stored(load_generation(session), *more)
        if response:
            return response
        with self.state.turns.take((self._etag, self.base)):
            return self.answer(load, show, *more)

    def answer_from(self, show: Callable[[KnowledgeSnapshot], Response], body: bytes = b"") -> Response:
        """`answer` from what the gate knows, which is in memory. `body` is the body that came along."""
        snapshot = self.state.knowledge.now()
        return self.stored_decision(snapshot, body) or show(snapshot)

    def answer_from_in_turn(self, show: Callable[[KnowledgeSnapshot], Response]) -> Response:
        """`answer_from` for what takes long. Raises Busy."""
        response = self.stored_decision(self.state.knowledge.now())
        if response:
            return response
        with self.state.turns.take((self._etag, self.base)):
            return self.answer_from(show)

    def stored_decision(self, snapshot: KnowledgeSnapshot, body: bytes = b"") -> Response | None:
        """A decision says when it was made, so its copy is right for a minute."""
        return self.stored(snapshot.generation, f"{self.now:%H:%M}", body)

    def stored(self, generation: int, *more: str | bytes) -> Response | None:
        """304 where the reader's own copy is still right, else the answer that is kept here; None: it is to be made."""
        self._etag = self._tag(generation, *more)
        if self.request.method != "POST" and _holds(self.request.headers.get("If-None-Match", ""), self._etag):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=self._caching())
        copy = self.state.answers.find((self._etag, self.base))
        return Response(copy[0], headers=copy[1]) if copy else None

    def known(self, session: Session) -> Known:
        """All cells, as of the transaction that `session` is in."""
        return self.state.knowledge.load(session, self.now).knowledge.known

    def _tag(self, generation: int, *more: str | bytes) -> str:
        """Pages say "3 min ago", which is right for a minute; JSON has only the staleness of a day."""
        until = f"{self.now:%Y-%m-%d %H:%M}" if self.is_page else f"{self.now:%Y-%m-%d}"
        whose = (self._is_private, self.principal.name if self.is_page else "", self.mine)
        parts = (generation, self.state.assets_version, self.address, self.language, self.theme, until, whose, *more)
        return f'W/"{hashlib.sha256(repr(parts).encode()).hexdigest()[:24]}"'

    @property
    def address(self) -> str:
        """Path and query as asked for: what a reader can copy, and where preferences lead back to."""
        query = self.request.url.query
        return f"{self.request.url.path}?{query}" if query else self.request.url.path

    @property
    def base(self) -> str:
        """The address of this server, for commands that a reader pastes; empty where a file is made."""
        return "" if self.is_file else str(self.request.base_url).rstrip("/")

    @property
    def is_file(self) -> bool:
        """Whether the answer becomes a file of `knowngood site`, whose reader can ask nothing."""
        return self.state.site is not None

    def leads_to(self, address: str) -> bool:
        """Whether a link there leads anywhere: from a file only to another one."""
        return self.state.site is None or address in self.state.site.addresses

    def reachable(self, choices: Iterable[Choice]) -> list[Choice]:
        return [choice for choice in choices if self.leads_to(choice.address)]

    def page(self, template: str, body: object = None, status: int = 200, **more: object) -> Response:
        """The template reads the answer as `page`, and `more` by its names."""
        response = self.state.templates.TemplateResponse(
            self.request, template, {"page": body, "context": self, "t": self.say, **more}, status_code=status
        )
        response.headers.update(self._caching())
        if self.is_posted and "lang" in self.request.query_params:
            remember_preferences(response, **{LANGUAGE_COOKIE: self.language})
        return self._keep(response)

    @property
    def is_posted(self) -> bool:
        return self.request.method == "POST"

    def json(
        self,
        answer: Any,  # noqa: ANN401 - whatever a route answers
        *,
        include: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """The answer, a dataclass or a model, by its own fields, with its messages in the reader's language. `include`
        leaves all else out, as pydantic does.
        """
        kind: Any = type(answer)
        text = _adapter_of(kind).dump_json(answer, include=dict(include) if include else None, context=self)
        return self._keep(Response(text, media_type="application/json", headers={**self._caching(), **(headers or {})}))

    def ruling(self, body: str, media: str, headers: Mapping[str, str]) -> Response:
        """A decision in whatever form it was asked for."""
        return self._keep(Response(body, media_type=media, headers={**self._caching(), **headers}))

    def _keep(self, response: Response) -> Response:
        """Keep a response in the cache by its tag and the server's own address: pages print commands that hold it."""
        if self._etag and response.status_code == HTTPStatus.OK:
            headers = {name: value for name, value in response.headers.items() if name != "content-length"}
            self.state.answers.keep((self._etag, self.base), (bytes(response.body), headers))
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
        if not self._etag:
            return {"Cache-Control": "no-store"} if self._is_private else {}
        return {
            "ETag": self._etag,
            "Cache-Control": _REVALIDATE_PRIVATE if self._is_private else _REVALIDATE,
            "Vary": ", ".join(self._varies_by()),
        }

    def _varies_by(self) -> Iterator[str]:
        yield "Cookie"
        if self.is_page:
            yield "Accept-Language"
        if self._is_private:
            yield "Authorization"

    @property
    def _is_private(self) -> bool:
        """Whether not everybody may see this: reads are closed, or a page says who is signed in."""
        return self.state.rules.reads_need_token or self.principal.token is not None

    def say(self, text: str, **values: object) -> str:
        return i18n.say(text, self.language, **values)

    def render(self, message: Message | None, *, begins: bool = False) -> Markup:
        """The message of a rule (a reason, a history) as HTML, in the reader's language; as a sentence `begins`."""
        return in_words(message, self.language, begins=begins)

    def write(self, message: Message) -> str:
        """The message as plain text in the reader's language."""
        return as_text(message, self.language)

    def ago(self, then: datetime) -> str:
        """How long ago; the day in a file, which is read at any time."""
        return f"{then:%Y-%m-%d}" if self.is_file else i18n.ago(then, self.now, self.language)

    def title_of(self, issue: Issue) -> str:
        return self.in_language(issue.title, issue.title_zh)

    def titled(self, issue: Issue, workarounds: Sequence[str]) -> str:
        """Workarounds by their titles: one, and how many more. Ids name all of them, where titles would be a page."""
        first = issue.workaround(workarounds[0])
        title = self.in_language(first.title, first.title_zh)
        more = len(workarounds) - 1
        return self.say("{title} and {n} more", title=title, n=more) if more else title

    def what_is_left(self, left: Left) -> str:
        return self.in_language(left.what, left.what_zh)

    def in_language(self, english: str, chinese: str) -> str:
        """An issue's own words: the Chinese twin where the reader asks for it. A text that has none yet says so."""
        if self.language is not Language.CHINESE or not english:
            return english
        if chinese:
            return chinese
        if _CODE_ALONE.fullmatch(english):
            return english
        between = "\n\n" if "\n" in english.strip() else " "  # a fence of Markdown ends on a line of its own
        return f"{english.rstrip()}{between}{self.say('(not in Chinese yet)')}"

    @property
    def choosing_build(self) -> str:
        """The address of the page where readers say which build is theirs, to come back here."""
        return f"{MY_BUILD}?{urlencode({'to': self.address})}"

    def preferring(self, **preference: str) -> str:
        """The address that keeps a preference and leads back here."""
        return f"/preferences?{urlencode({**preference, 'to': self.address})}"


def remember_preferences(response: Response, **preferences: str | None) -> None:
    """The language (`lang`) and the theme, in cookies; None: it stays as it was."""
    for name, value in preferences.items():
        if value is not None:
            response.set_cookie(name, value, max_age=YEAR_S, httponly=True, samesite="lax")


def uncached(response: Response) -> Response:
    """Let nobody keep a response that holds what one reader typed, or what nobody else may see."""
    response.headers["Cache-Control"] = "no-store"
    return response


def see_other(address: str) -> Response:
    """Leads a browser on after a form."""
    return uncached(RedirectResponse(address, HTTPStatus.SEE_OTHER))


def _language(request: Request, *, is_page: bool) -> Language:
    """An address may ask for a language (`?lang=zh`, so that links can be shared); else the reader's own choice; else,
    for pages, what their browser asks for.
    """
    code = request.query_params.get("lang") or request.cookies.get(LANGUAGE_COOKIE)
    if code in set(Language):
        return Language(code)
    return i18n.accepted(request.headers.get("Accept-Language", "")) if is_page else Language.ENGLISH


def _theme(request: Request) -> str:
    """`light` or `dark` where the reader chose one; empty: as the system is set."""
    chosen = request.cookies.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else ""


def _holds(header: str, etag: str) -> bool:
    """If-None-Match compares weakly: proxies may have added or taken the `W/`."""
    tags = {tag.strip().removeprefix("W/") for tag in header.split(",")}
    return etag.removeprefix("W/") in tags


def context_of(request: Request) -> RequestContext:
    return RequestContext(request, state_of(request.app))


async def _context(request: Request) -> RequestContext:
    """Waits for nothing, so it need not cost a thread."""
    return context_of(request)


Context = Annotated[RequestContext, Depends(_context)]
