"""Which methods an address takes: for `Allow`, and for whoever asks with OPTIONS."""

from fastapi import Request
from starlette.routing import Match

_ASKED = ("GET", "POST", "PUT", "PATCH", "DELETE")


def methods_at(request: Request) -> tuple[str, ...]:
    """Methods that any route at this address takes. One route alone does not know what the others beside it take."""
    taken = [method for method in _ASKED if _takes(request, method)]
    return ("GET", "HEAD", *taken[1:], "OPTIONS") if "GET" in taken else (*taken, "OPTIONS")


def _takes(request: Request, method: str) -> bool:
    scope = {**request.scope, "method": method}
    return any(route.matches(scope)[0] is Match.FULL for route in request.app.router.routes)
