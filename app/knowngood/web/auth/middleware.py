"""Who comes in: every request is counted, its token or cookie looked up, and closed reads stay closed.

It stands before all routes, so that one which is added later is closed too, and before the answers that are kept, so
that none made for one reader is given to another who may not read. Without a token and with reads open, no query is
made. What a write needs beyond reading is the route's own to ask for (`principal.Needs`).
"""

from contextlib import suppress
from urllib.parse import urlencode

from anyio import to_thread
from fastapi import Request, Response
from starlette.types import Receive, Scope, Send

from knowngood.domain import access
from knowngood.domain.access import NotAllowed, NotSignedIn
from knowngood.domain.errors import KnownGoodError, StoreUnusable
from knowngood.store.engine import reading, unit_of_work
from knowngood.store.tokens import find_session, find_token, needs_noting, note_use
from knowngood.web.app_state import AppState, state_of
from knowngood.web.auth.principal import NOBODY, SESSION_COOKIE, Principal, is_from_here, remember_reader, require
from knowngood.web.errors import is_for_a_program
from knowngood.web.middleware import HttpMiddleware
from knowngood.web.middleware.rate_limit import asker_at
from knowngood.web.parameter_validation import refuse_long
from knowngood.web.request_context import see_other

# What a machine that watches the server, and a person who is about to sign in, need before they may read.
_ALWAYS_OPEN = frozenset({"/healthz", "/readyz", "/sign-in", "/sign-out", "/preferences"})
_OPEN_FOLDER = "/static/"
# Doors whose own scope is all they ask for: a worker that may only submit reads nothing.
_OWN_SCOPE = frozenset({"/api/v1/results", "/api/v1/whoami"})
_READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_PATIENCE_S = 0.05  # a note of the last use is not worth waiting for an import to end


class AuthMiddleware(HttpMiddleware):
    """Lets requests in, with the reader written into their scope, or answers in their place."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        try:
            remember_reader(request, await self._let_in(request, state_of(request.app)))
        except KnownGoodError as error:
            response = await to_thread.run_sync(_turned_away, request, error)
            await response(scope, receive, send)
            return
        await self.app(scope, receive, send)

    async def _let_in(self, request: Request, state: AppState) -> Principal:
        """The reader, once counted and found to be allowed to ask at all."""
        refuse_long(request.scope)
        address = asker_at(request.client.host if request.client else "")
        presented, cookie = _bearer(request), request.cookies.get(SESSION_COOKIE, "")
        if presented is None and not cookie:
            state.buckets.take(address)
            principal = NOBODY
        else:
            state.buckets.look(f"failed {address}")  # a flood of wrong tokens costs no queries
            principal = await to_thread.run_sync(_recognised, state, presented, cookie)
            state.buckets.take(principal.token.id if principal.token else f"failed {address}")
            if presented is not None and principal.token is None:
                raise NotSignedIn(principal.problem, is_presented=True)
        if principal.session and request.method not in _READING_METHODS and not is_from_here(request):
            raise NotAllowed("another site sent this in your name; open the page here and send it from there")
        remember_reader(request, principal)
        if state.rules.reads_need_token and not _is_open(request.scope["path"]):
            require(request, access.Scope.READ)
        return principal


def _is_open(path: str) -> bool:
    """`path` is what routes are found by: an address that only reads alike is not open."""
    return path in _ALWAYS_OPEN or path in _OWN_SCOPE or path.startswith(_OPEN_FOLDER)


def _bearer(request: Request) -> str | None:
    """The token of the Authorization header; None where there is none. Other schemes belong to proxies before us."""
    sent = [text for text in request.headers.getlist("authorization") if text[:6].casefold() == "bearer"]
    if len(sent) > 1:
        raise NotSignedIn("there are several Authorization headers; send one", is_presented=True)
    return sent[0][6:].strip(" ") if sent else None


def _recognised(state: AppState, presented: str | None, cookie: str) -> Principal:
    """The reader by their token, else by their session. A session that is over is nobody's, and no fault."""
    now = state.clock()
    with reading(state.engine) as s:
        lookup = find_token(s, presented, now) if presented is not None else find_session(s, cookie, now)
    if lookup.token is not None and needs_noting(lookup.token, now):
        with suppress(StoreUnusable), unit_of_work(state.engine, wait_s=_PATIENCE_S) as s:
            note_use(s, lookup.token, now)
    session = "" if presented is not None else cookie
    return Principal(lookup.token, session) if lookup.token else Principal(problem=lookup.problem)


def _turned_away(request: Request, error: KnownGoodError) -> Response:
    """Lead a person who has yet to sign in to that page; refuse everybody else."""
    is_page = request.method == "GET" and not is_for_a_program(request)
    if isinstance(error, NotSignedIn) and is_page and not error.is_presented:
        query = f"?{request.url.query}" if request.url.query else ""
        to = urlencode({"to": f"{request.url.path}{query}"})
        return see_other(f"/sign-in?{to}")
    return state_of(request.app).refuse(request, error)
