"""`/api/v1/watchlists`: named choices of issues. Anybody who reads may use them; their owner changes them."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from knowngood.domain.access import Actor, Scope
from knowngood.gate.watchlists.schemas import WatchListBody, WatchListChange, WatchListsBody
from knowngood.health.api import Judge
from knowngood.matrix.lookups import find_watch_list
from knowngood.store.engine import unit_of_work
from knowngood.store.watch_lists import ListOwner, load_watch_lists, remove_watch_list, save_watch_list
from knowngood.web.auth.principal import principal_of
from knowngood.web.errors import PROBLEM_MEDIA, Problem
from knowngood.web.request_context import Context

router = APIRouter(tags=["watchlists"])

Version = Annotated[int | None, Query(ge=0, le=2_000_000_000)]
_TAKEN: dict[int | str, dict[str, Any]] = {
    409: {
        "description": "Another version is there than the one the change was made for",
        "content": {PROBLEM_MEDIA: {"schema": Problem.model_json_schema()}},
    }
}


@router.get("/watchlists", response_model=WatchListsBody)
def watch_lists(context: Context) -> Response:
    """Every watch list as it is now."""
    return context.answer(
        load_watch_lists,
        lambda lists: context.json(WatchListsBody(watchlists=[WatchListBody.of(list_) for list_ in lists.values()])),
    )


@router.get("/watchlists/{name}", response_model=WatchListBody)
def watch_list(context: Context, name: str, version: Version = None) -> Response:
    """`version` asks for the list as it was then."""
    return context.answer(
        lambda session: find_watch_list(session, name, version), lambda list_: context.json(WatchListBody.of(list_))
    )


@router.put("/watchlists/{name}", response_model=WatchListBody, responses=_TAKEN)
def put_watch_list(context: Context, request: Request, actor: Judge, name: str, change: WatchListChange) -> Response:
    """Keep a list under this name: a new one becomes yours. The same once more changes nothing."""
    with unit_of_work(context.state.engine) as session:
        list_ = save_watch_list(
            session, name, change.content, by=_keeper(request, actor), now=context.now, based_on=change.version
        )
    return context.json(WatchListBody.of(list_))


@router.delete("/watchlists/{name}", status_code=HTTPStatus.NO_CONTENT, responses=_TAKEN)
def delete_watch_list(context: Context, request: Request, actor: Judge, name: str, version: Version = None) -> Response:
    """Its versions can still be asked for by number. `version` is the one that you looked at."""
    with unit_of_work(context.state.engine) as session:
        remove_watch_list(session, name, by=_keeper(request, actor), now=context.now, based_on=version)
    return Response(status_code=HTTPStatus.NO_CONTENT, headers={"Cache-Control": "no-store"})


def _keeper(request: Request, actor: Actor) -> ListOwner:
    return ListOwner(actor, overrules=principal_of(request).may(Scope.ADMIN))
