"""Addresses that a release took away: each says for one release what takes its place, or leads there."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from knowngood.web.errors import Gone
from knowngood.web.urls import part


class Removed(NamedTuple):
    """`sentence` is the answer (410). Where `address` is given the answer is a redirect to it (308), with the parts of
    the path that the old address names, such as {name}, filled in.
    """

    sentence: str = ""
    address: str = ""


_LISTS = (
    "watch lists are not edited here any more; `knowngood watch add`, PUT /api/v1/watchlists/NAME and [watch] of "
    "knowngood.toml keep them"
)

_DOCUMENTS = "documents are not served here any more; read docs/ of the repository, /api/docs for the API, or /signs"

REMOVED: dict[str, Removed] = {
    "/pieces": Removed(address="/signs"),
    "/docs": Removed(_DOCUMENTS),
    "/docs/glossary": Removed(address="/signs"),
    "/docs/api": Removed(address="/api/docs"),
    "/docs/{rest:path}": Removed(_DOCUMENTS),
    "/api/v1/docs": Removed(_DOCUMENTS),
    "/api/v1/docs/{name}": Removed(_DOCUMENTS),
    "/audit": Removed("the audit page is no more; /api/v1/audit has every entry, for the scope admin"),
    "/watchlists/~new": Removed(_LISTS),
    "/watchlists/{name}/edit": Removed(_LISTS),
    "/watchlists/{name}/remove": Removed(_LISTS),
    "/charts/gained-and-lost.csv": Removed("this chart is no more; /compare says what two releases gain and lose"),
    "/charts/ages.csv": Removed("this chart is no more; measured_at of /api/v1/matrix says how old evidence is"),
    "/api/v1/export/kcidb": Removed(
        "the KCIDB report is no more; /api/v1/export/bundle has the evidence, and /api/v1/matrix the verdicts"
    ),
}
"""Removed addresses by the path of the route; `/old/{rest:path}` is everything below `/old/`."""


def router_of(removed: Mapping[str, Removed]) -> APIRouter:
    """The routes of addresses that are no more; no document of the API has them."""
    router = APIRouter()
    for path, removal in removed.items():  # no API route: whatever is asked for with it, the answer is the same
        router.add_route(path, _answer(removal), include_in_schema=False)
    return router


def _answer(removed: Removed) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        if not removed.address:
            raise Gone(removed.sentence)
        named = {name: "/".join(map(part, value.split("/"))) for name, value in request.path_params.items()}
        return RedirectResponse(removed.address.format(**named), HTTPStatus.PERMANENT_REDIRECT)

    return answer
