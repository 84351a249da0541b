"""Asking the application in this very process: no socket, no client."""

from typing import Any
from urllib.parse import unquote, urlsplit

from fastapi import FastAPI

from knowngood.web.html.i18n import Language
from knowngood.web.request_context import LANGUAGE_COOKIE

_OK = 200


class NoPage(RuntimeError):
    """A page of the site that the application refuses to make: a fault of ours."""


async def ask(app: FastAPI, address: str, language: Language) -> bytes:
    """The answer to a GET by ASGI 3.0. Raises NoPage for any other than 200."""
    parts = urlsplit(address)
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 0),
        "root_path": "",
        "path": unquote(parts.path),
        "raw_path": parts.path.encode(),
        "query_string": parts.query.encode(),
        "headers": [(b"host", b"localhost"), (b"cookie", f"{LANGUAGE_COOKIE}={language}".encode())],
    }
    answered: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:  # noqa: ANN401 - ASGI's
        answered.append(message)

    await app(scope, receive, send)
    if answered[0]["status"] != _OK:
        raise NoPage(f"{address} answered {answered[0]['status']}")
    return b"".join(message.get("body", b"") for message in answered)
