"""Addresses that a release took away: each says for one release what takes its place, or leads there."""

from collections.abc import Callable, Mapping
from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from knowngood.web.errors import Gone
from knowngood.web.urls import part

_LISTS = (
    "watch lists are not edited here any more; `knowngood watch add`, PUT /api/v1/watchlists/NAME and [watch] of "
    "knowngood.toml keep them"
)

_DOCUMENTS = "documents are not served here any more; read docs/ of the repository, /api/docs for the API, or /signs"

REMOVED = {
    "/pieces": "/signs",
    "/docs": _DOCUMENTS,
    "/docs/glossary": "/signs",
    "/docs/api": "/api/docs",
    "/docs/{rest:path}": _DOCUMENTS,
    "/api/v1/docs": _DOCUMENTS,
    "/api/v1/docs/{name}": _DOCUMENTS,
    "/audit": "the audit page is no more; /api/v1/audit has every entry, for the scope admin",
    "/watchlists/~new": _LISTS,
    "/watchlists/{name}/edit": _LISTS,
    "/watchlists/{name}/remove": _LISTS,
    "/charts/gained-and-lost.csv": "this chart is no more; /compare says what two releases gain and lose",
    "/charts/ages.csv": "this chart is no more; measured_at of /api/v1/matrix says how old evidence is",
    "/embed/issues/{issue}": "/issues/{issue}",
    "/api/v1/export/kcidb": (
        "the KCIDB report is no more; /api/v1/export/bundle has the evidence, and /api/v1/matrix the verdicts"
    ),
}
"""Removed addresses by the path of the route; `/old/{rest:path}` is everything below `/old/`. A sentence is the answer
(410); an address is led to (308), with the parts of the path that the old one names, such as {name}, filled in.
"""


def router_of(removed: Mapping[str, str]) -> APIRouter:
    """The routes of addresses that are no more; no document of the API has them."""
    router = APIRouter()
    for path, instead in removed.items():  # no API route: whatever is asked for with it, the answer is the same
        router.add_route(path, _answer(instead), include_in_schema=False)
    return router


def _answer(instead: str) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        if " " in instead:
            raise Gone(instead)
        named = {name: "/".join(map(part, value.split("/"))) for name, value in request.path_params.items()}
        return RedirectResponse(instead.format(**named), HTTPStatus.PERMANENT_REDIRECT)

    return answer
