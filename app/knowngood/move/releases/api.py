"""`/api/v1/releases`: each release over the one before it, and one over any other."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from knowngood.matrix.overview.selection import Names
from knowngood.move.releases.rules import ReleaseAnswer, ReleaseSummary, every_release
from knowngood.move.releases.service import load_release
from knowngood.store.engine import Session
from knowngood.web.request_context import Context

router = APIRouter(tags=["releases"])


@dataclass(frozen=True)
class Releases:
    """Newest first."""

    releases: tuple[ReleaseSummary, ...]


class ReleaseQuery(BaseModel):
    before: Annotated[
        str, Field(alias="from", max_length=200, description="The release to compare with, such as 2.14.1")
    ] = ""
    hardware: Annotated[Names, Field(description="Hardware classes, or names of GPUs; none means every measured one")]


@router.get("/releases", response_model=Releases)
def releases(context: Context) -> Response:
    """Every measured release over the last patch of the minor release before it."""
    return context.answer(lambda session: Releases(every_release(context.known(session))), context.json)


@router.get("/releases/{release}", response_model=ReleaseAnswer)
def release(context: Context, release: str, query: Annotated[ReleaseQuery, Query()]) -> Response:
    """Install it, wait or stay; what it fixes, breaks and leaves broken, and whether it can be installed. `2.15` is the
    newest measured patch; any other build answers by its id.
    """

    def load(session: Session) -> ReleaseAnswer:
        return load_release(session, context.known(session), release, query.before, query.hardware)[0]

    return context.answer(load, context.json)
