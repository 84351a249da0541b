"""`/api/v1/results`: evidence from workers elsewhere, as the bundle that `knowngood run` writes there."""

import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BeforeValidator, Field

from knowngood.domain.access import Actor, Scope
from knowngood.domain.errors import StoreUnusable
from knowngood.share.bundles.store import take_in_bundle
from knowngood.web.app_state import state_of
from knowngood.web.auth.principal import RequireScope
from knowngood.web.errors import InvalidParameter
from knowngood.web.json_body import Body
from knowngood.web.request_context import Context

router = APIRouter(tags=["results"])

_BUNDLE = {"schema": {"type": "string", "format": "binary"}}
_TAKES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "A result bundle (JSON Lines), gzipped or not",
        "content": {"application/gzip": _BUNDLE, "application/octet-stream": _BUNDLE, "application/x-ndjson": _BUNDLE},
    }
}

_needs = RequireScope(Scope.SUBMIT)


async def _submitter(request: Request) -> Actor:
    """The sender, counted against how many bundles their token may send; all before the body is read."""
    actor = await _needs(request)
    state_of(request.app).results_buckets.take(actor.token)
    return actor


Submitter = Annotated[Actor, Depends(_submitter)]


class TakenBody(Body):
    """`added` attempts are new here, `known` were here before. Of the added, `unknown` belong to issues or builds that
    this catalogue does not have, `superseded` to another state of their repro; `voided` are of a worker and a time
    whose results do not count; `replaced` took the place of others under their number, which were voided. Of `refused`
    another attempt stands here under the number (`clashes` are the first of these numbers): who runs this server can
    void it, and then the bundle may come again. `changed` cells read differently now.
    """

    origin: str
    added: int
    known: int
    unknown: int
    superseded: int
    voided: int
    changed: Annotated[int, BeforeValidator(len)]
    replaced: int = 0
    refused: Annotated[int, BeforeValidator(len)] = 0
    clashes: Annotated[
        list[str],
        BeforeValidator(lambda refused: [clash.id for clash in refused[:20]]),
        Field(validation_alias="refused", default_factory=list),
    ]


async def _received(request: Request) -> AsyncGenerator[Path]:
    """The body in a file, written as it comes: memory does not grow with it. `Bodies` ends one that is too long."""
    try:
        with tempfile.TemporaryFile() as file:  # without a name: it goes with this process, however that ends
            async for chunk in request.stream():
                file.write(chunk)
            file.flush()
            yield Path(f"/proc/self/fd/{file.fileno()}")
    except OSError as error:  # also as it is closed, which writes what was not written
        raise StoreUnusable(f"there is no room for a bundle that comes in: {error.strerror or error}") from error


@router.post("/results", response_model=TakenBody, openapi_extra=_TAKES, operation_id="post_results")
def submit(context: Context, submitter: Submitter, bundle: Annotated[Path, Depends(_received)]) -> Response:
    """Take in a bundle: one of up to 8 MiB (unpacked) whole or not at all, a larger one in steps, once all of it was
    found to be right; where that is broken off it goes on when it is sent again, and once more changes nothing. Its
    origin is the name of your token.
    """
    if bundle.stat().st_size == 0:
        raise InvalidParameter("the body is empty; send a bundle, such as `--data-binary @results.jsonl.gz`")
    report = take_in_bundle(context.state.engine, bundle, context.now, by=submitter, vouched=True)
    return context.json(TakenBody.of(report))
