"""Watches every request: one line of the log and the counters of `metrics`. Says templates, never what was asked for.

Neither the path nor its query is written down: people paste tokens, and texts that are nobody's business, into both.
"""

import time

import structlog
from starlette.types import Message, Receive, Scope, Send

from knowngood.web.app_state import state_of
from knowngood.web.middleware import HttpMiddleware
from knowngood.web.urls import API, DECISION, RESULTS

UNROUTED = "(none)"
"""The template of what no route answered: there is none, or AuthMiddleware answered before it."""

_DECISION = DECISION.lower().encode()
_GATE = f"{API}/gate"
# Answered before or beside the routes; their path is all of their template.
_WITHOUT_ROUTE = frozenset({_GATE, RESULTS, "/openapi.json"})
_STREAM = b"text/event-stream"
_UNANSWERED = 499  # nginx' word for a client that left before its answer began

logger = structlog.get_logger(__name__)


class AccessLogMiddleware(HttpMiddleware):
    """Runs within `RequestHead`, so that its line carries the name, and around all else."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen = _Seen()

        async def hear() -> Message:
            message = await receive()
            seen.received += len(message.get("body", b""))
            return message

        async def say(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.begin(message)
            await send(message)

        began = time.perf_counter()
        try:
            with state_of(scope["app"]).pulse.beat():
                await self.app(scope, hear, say)
        except Exception:
            seen.status = 500  # the outermost middleware answers
            raise
        finally:
            seen.tell(scope, time.perf_counter() - began)


class _Seen:
    """Bytes, status and headers of one request, as they pass."""

    def __init__(self) -> None:
        self.status = _UNANSWERED
        self.received = 0
        self.decision = ""
        self.is_stream = False

    def begin(self, message: Message) -> None:
        self.status = int(message["status"])
        for name, value in message.get("headers", ()):
            if name == _DECISION:
                self.decision = value.decode()
            elif name == b"content-type":
                self.is_stream = value.startswith(_STREAM)

    def tell(self, scope: Scope, seconds: float) -> None:
        instruments = state_of(scope["app"]).instruments
        method, route = scope["method"], template_of(scope)
        instruments.answered(method, route, self.status, None if self.is_stream else seconds)
        if self.decision:
            instruments.decided(self.decision)
        if method == "POST" and route == RESULTS:
            instruments.took_in(self.received, self.status)
        logger.info("request", method=method, route=route, status=self.status, ms=round(seconds * 1000, 1))


def template_of(scope: Scope) -> str:
    """The template of the route that answered, with the prefix that routers of the API are included under."""
    path: str = scope["path"]
    template = getattr(scope.get("route"), "path", None)
    if template is None:
        return path if path in _WITHOUT_ROUTE else UNROUTED
    prefixed = path.startswith(f"{API}/") and not template.startswith(f"{API}/")
    return f"{API}{template}" if prefixed else str(template)
