"""`/releases`, and `/releases/2.15` for one of them or for any other build. `/2.15` and the addresses of builds lead
there.
"""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from knowngood.domain.builds.build import Build
from knowngood.domain.verdicts.history import is_release
from knowngood.environments.wheels.locks import locked_name
from knowngood.environments.wheels.table import shipped_wheels
from knowngood.matrix.lookups import find_build
from knowngood.move.releases.api import ReleaseQuery
from knowngood.move.releases.rules import ReleaseAnswer, ReleaseLine, every_release, summary_over
from knowngood.move.releases.service import load_release
from knowngood.move.upgrade.constraints import Constraints, companions_of
from knowngood.web.html.grid import Choice
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API, constraints_address, page_of_build, release_address

router = APIRouter(include_in_schema=False)


@router.get("/releases")
def releases(context: Context) -> Response:
    return context.answer(
        lambda session: every_release(context.known(session)), lambda found: context.page("releases.html", found)
    )


@router.get("/releases/{release}")
def release(context: Context, release: str, query: Annotated[ReleaseQuery, Query()]) -> Response:
    """The reader's own class comes first."""
    return context.answer(
        lambda session: load_release(session, context.known(session), release, query.before, query.hardware),
        lambda loaded: _page(context, query, *loaded),
    )


def _page(
    context: RequestContext, query: ReleaseQuery, answer: ReleaseAnswer, build: Build, line: ReleaseLine
) -> Response:
    own, mine = context.mine.hardware_among(line.known.hardware), context.mine.build_among(line.known.builds)
    classes = (own,) if own else tuple(query.hardware) or line.known.hardware
    has = Constraints(packages=context.mine.versions, index=shipped_wheels())
    lacking = [one.package for one in companions_of(build, has, mine) if not one.release] if mine else []
    is_move = mine is not None and mine.wheel.id != build.wheel.id
    name = answer.url.removeprefix("/releases/")
    asked = {"from": query.before, "hardware": ",".join(query.hardware)}
    others = [other.build_id.release for other in reversed(line.measured) if other.id != build.id]
    settled = (other for other in reversed(line.measured) if (age := line.known.age(other)) and age.settled)
    return context.page(
        "release.html",
        answer,
        build=build,
        mine=mine,
        from_mine=summary_over(mine, build, classes, line.known, lacking).headline if is_move else None,
        is_release=is_release(build),
        issues=line.known.issues,
        standings=sorted(answer.standings, key=lambda standing: standing.hardware != own),
        patches=[
            Choice(other.build_id.release, release_address(other.build_id.release), other.id == build.id)
            for other in line.patches(build)
        ],
        compared=[
            Choice(other, release_address(name, **{**asked, "from": other}), other == answer.before) for other in others
        ],
        settled=next(settled, None),
        constraints=constraints_address(locked) if (locked := locked_name(build)) else "",
        json_address=f"{API}{release_address(name, **asked)}",
    )


def short_address(request: Request) -> Response:
    return RedirectResponse(f"/releases{request.url.path}", HTTPStatus.PERMANENT_REDIRECT)


for path in ("/{major:int}.{minor:int}", "/{major:int}.{minor:int}.{patch:int}"):
    router.add_route(path, short_address, include_in_schema=False)


@router.get("/builds/{build}")
def old_address(context: Context, request: Request, build: str) -> Response:
    """Pages of builds were here until 0.2."""
    query = f"?{request.url.query}" if request.url.query else ""
    return context.answer(
        lambda session: page_of_build(find_build(session, build)[0]),
        lambda address: RedirectResponse(f"{address}{query}", HTTPStatus.PERMANENT_REDIRECT),
    )
