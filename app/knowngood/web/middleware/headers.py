"""Headers every answer carries, and HEAD for every page."""

import re
from http import HTTPStatus
from uuid import uuid4

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from knowngood.web.middleware import HttpMiddleware, on_start

# No inline style or script, nothing from another host: a log or a summary that carries markup stays inert.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

"""The policy of pages that others may show in a frame. A browser that knows `frame-ancestors` does not ask
X-Frame-Options.
"""

HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

REQUEST_ID = "knowngood.request_id"
"""The key of a request's id in its scope."""

_SANE_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,64}\Z")


class RequestHead(HttpMiddleware):
    """Names each request, by the X-Request-ID it came with, where that is one, else by a new one; and adds HEADERS to
    every answer, errors included, where a route did not set them itself.

    The name is in every answer and in every line of the log that the request causes. The outermost of our own.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        sent_id = Headers(scope=scope).get("x-request-id", "")
        name = sent_id if _SANE_ID.match(sent_id) else uuid4().hex
        scope[REQUEST_ID] = name

        def complete(headers: MutableHeaders) -> None:
            headers["X-Request-ID"] = name
            for header, value in HEADERS.items():
                headers.setdefault(header, value)

        with bound_contextvars(request_id=name):
            await self.app(scope, receive, on_start(send, complete))


_PUBLIC = ("/api/v1/", "/badge/", "/openapi.json")
_READING = ("GET", "HEAD")


class PublicReads(CORSMiddleware):
    """CORS: pages of other sites may GET the API and badges, as nobody in particular.

    The star rules out credentials: a browser sends no cookie along and shows the page nothing that needed one.
    """

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            app,
            allow_origins=["*"],
            allow_methods=_READING,
            allow_headers=["If-None-Match", "X-Request-ID"],
            expose_headers=["ETag", "Link", "Retry-After", "X-Request-ID"],
            max_age=86400,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send every reader the same headers, without `Vary`: a shared cache gives others what a page of ours asked
        for.
        """
        is_public = scope["type"] == "http" and scope["path"].startswith(_PUBLIC)
        if is_public and scope["method"] == "OPTIONS":
            await super().__call__(scope, receive, send)
        elif is_public and scope["method"] in _READING:
            await self.app(scope, receive, on_start(send, lambda headers: headers.update(self.simple_headers)))
        else:
            await self.app(scope, receive, send)

    def preflight_response(self, request_headers: Headers) -> Response:  # noqa: ARG002 - as above
        """The browser compares: what it may not send is no fault of the question."""
        return Response(status_code=HTTPStatus.NO_CONTENT, headers=self.preflight_headers)


class HeadAsGet(HttpMiddleware):
    """Answers HEAD with what GET would have sent, less the body (`curl -I` and link checkers ask this way)."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        if scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        get_scope = {**scope, "method": "GET"}
        await self.app(get_scope, receive, send_without_body)
        scope["route"] = get_scope.get("route")  # for those around this, who count by it


# Which methods an address takes: for `Allow`, and for whoever asks with OPTIONS.

_ASKED = ("GET", "POST", "PUT", "PATCH", "DELETE")


def methods_at(request: Request) -> tuple[str, ...]:
    """Methods that any route at this address takes. One route alone does not know what the others take."""
    taken = [method for method in _ASKED if _takes(request, method)]
    return ("GET", "HEAD", *taken[1:], "OPTIONS") if "GET" in taken else (*taken, "OPTIONS")


def _takes(request: Request, method: str) -> bool:
    scope = {**request.scope, "method": method}
    return any(route.matches(scope)[0] is Match.FULL for route in request.app.router.routes)
