"""Who asks, and what this installation lets them: the values that AuthMiddleware leaves for routes and pages."""

import hashlib
import hmac
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

from fastapi import Request

from knowngood.domain.access import Actor, NotAllowed, NotSignedIn, Scope, Token
from knowngood.web.middleware.rate_limit import Buckets

SESSION_COOKIE = "session"
_PLACE = "knowngood.reader"
_MIB = 1 << 20


@dataclass(frozen=True)
class AccessPolicy:
    """Limits of an installation on its readers; sizes in bytes. A rate of 0 sets no limit.

    The rate is far above what a person's browser or a CI farm behind one address asks for: it stops what went wrong.
    """

    reads_need_token: bool = False
    requests_per_s: float = 500.0
    burst: int = 5000
    body_limit: int = 8 * _MIB
    results_limit: int = 512 * _MIB
    results_per_minute: float = 60.0

    def buckets(self) -> Buckets:
        return Buckets(self.requests_per_s, self.burst)

    def results_buckets(self) -> Buckets:
        """For bundles, by token: each holds the only write lock for a while, so that few do what many questions do."""
        return Buckets(self.results_per_minute / 60, max(1, round(self.results_per_minute)))


@dataclass(frozen=True)
class Principal:
    """The reader who asks. Without a token: nobody in particular. `session` is the secret of their cookie, where they
    sent that instead of a token: it reads like the token it was opened with, and writes through our own forms alone.
    `problem` says why what they sent is not counted.
    """

    token: Token | None = None
    session: str = ""
    problem: str = ""

    @property
    def name(self) -> str:
        return self.token.name if self.token else ""

    @property
    def form_token(self) -> str:
        """The CSRF token of our own forms: it follows from the cookie's secret alone."""
        if not self.session:
            return ""
        return hmac.new(self.session.encode(), b"known good form", hashlib.sha256).hexdigest()

    def may(self, scope: Scope) -> bool:
        return self.token is not None and self.token.allows(scope)


NOBODY = Principal()


def remember_reader(request: Request, principal: Principal) -> None:
    request.scope[_PLACE] = principal


def principal_of(request: Request) -> Principal:
    return cast("Principal", request.scope.get(_PLACE, NOBODY))


def require(request: Request, scope: Scope) -> Token:
    """The token that allows `scope`, or a refusal that says what would do."""
    principal = principal_of(request)
    if principal.token is None:
        raise NotSignedIn(f"this needs a token with the scope {scope}; send it as `Authorization: Bearer kg_...`")
    if not principal.token.allows(scope):
        has = ", ".join(principal.token.scopes)
        raise NotAllowed(f'the token "{principal.name}" has the scope {has}; this needs {scope}', scope)
    return principal.token


class RequireScope:
    """A route's dependency: a bearer token with this scope. Resolved before the body is read.

    A session does not do: a browser sends it by itself, whoever made the page that asks.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    async def __call__(self, request: Request) -> Actor:
        if principal_of(request).session:
            raise NotAllowed("a signed-in page cannot do this; send a token as `Authorization: Bearer kg_...`")
        return require(request, self.scope).actor


def is_from_here(request: Request) -> bool:
    """Whether a browser says that one of our own pages sent this.

    Hosts are compared, not schemes: behind a proxy that ends TLS we are asked by http. Every browser that knows
    SameSite cookies sends one of the two headers with a form; without both it is refused.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin", "")
    return bool(origin) and urlsplit(origin).netloc == request.headers.get("host", "")


def is_from_elsewhere(request: Request) -> bool:
    """Whether a browser says that a page of another site led here. An address that was typed, and what sends neither
    header, is from nowhere.
    """
    return not is_from_here(request) and (
        request.headers.get("sec-fetch-site", "none") != "none" or "origin" in request.headers
    )


def require_own_form(request: Request, form_token: str) -> None:
    """Refuse a form that another site had a signed-in browser send."""
    wanted = principal_of(request).form_token
    if not is_from_here(request) or not wanted or not hmac.compare_digest(wanted.encode(), form_token.encode()):
        raise NotAllowed(
            "this form did not come from a page of this server; open the page again and send it from there"
        )
