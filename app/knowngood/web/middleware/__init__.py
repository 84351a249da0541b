"""Limits on requests: rates, bodies, connections, headers; and the base of our ASGI middleware.

It looks at HTTP alone, and changes the headers of answers as they begin.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HttpMiddleware(ABC):
    """Pure ASGI, so that event streams pass through untouched."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self.handle if scope["type"] == "http" else self.app)(scope, receive, send)

    @abstractmethod
    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""


def on_start(send: Send, change: Callable[[MutableHeaders], None]) -> Send:
    """`send`, with the headers of the answer changed before they go out."""

    async def send_changed(message: Message) -> None:
        if message["type"] == "http.response.start":
            change(MutableHeaders(scope=message))
        await send(message)

    return send_changed
