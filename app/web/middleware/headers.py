"""Headers every answer carries, and HEAD for every page. Pure ASGI, so that event streams pass through untouched."""

import re
from http import HTTPStatus
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

# No inline style or script, nothing from another host: a log or a summary that carries markup stays inert.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

REQUEST_ID = "knowngood.request_id"
"""Where the id of a request stands in its scope."""

_SANE_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,64}\Z")


class RequestId:
    """Names each request: by the X-Request-ID it came with, where that is one, else by a new one.

    The name is in every answer and in every line of the log that the request causes. The outermost of our own.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        asked = Headers(scope=scope).get("x-request-id", "")
        name = asked if _SANE_ID.match(asked) else uuid4().hex
        scope[REQUEST_ID] = name

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-ID"] = name
            await send(message)

        with bound_contextvars(request_id=name):
            await self.app(scope, receive, send_with_id)


_READ_FROM_ANYWHERE = ("/api/v1/", "/badge/", "/openapi.json")
_PREFLIGHT = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, HEAD",
    "Access-Control-Allow-Headers": "Accept, If-None-Match, X-Request-ID",
    "Access-Control-Max-Age": "86400",
}
_CROSS_ORIGIN = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "ETag, Link, Retry-After, X-Request-ID",
}


class ReadFromAnywhere:
    """CORS: pages of other sites may GET the API and badges, as nobody in particular.

    The star rules out credentials: a browser sends no cookie along and shows the page nothing that needed one.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(_READ_FROM_ANYWHERE):
            await self.app(scope, receive, send)
            return
        asked = Headers(scope=scope)
        if scope["method"] == "OPTIONS" and "access-control-request-method" in asked:
            await Response(status_code=HTTPStatus.NO_CONTENT, headers=_PREFLIGHT)(scope, receive, send)
            return

        async def send_with_leave(message: Message) -> None:
            if message["type"] == "http.response.start" and scope["method"] in {"GET", "HEAD"}:
                headers = MutableHeaders(scope=message)
                for name, value in _CROSS_ORIGIN.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_with_leave)


class SecurityHeaders:
    """Adds HEADERS to every response, errors included; a header that a route set itself stands."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_with_headers)


class HeadAsGet:
    """Answers HEAD with what GET would have sent, less the body (`curl -I` and link checkers ask this way)."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        asked = {**scope, "method": "GET"}
        await self.app(asked, receive, send_without_body)
        scope["route"] = asked.get("route")  # for those around this, who count by it
