"""`/api/v1/builds`: the columns, and one build with every issue on one hardware class."""

import re
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import Field

from knowngood.domain.builds.build import Build
from knowngood.matrix.issues.build_schemas import BuildBody, BuildDetailBody, BuildsBody, build_detail
from knowngood.matrix.lookups import find_build
from knowngood.matrix.overview.selection import Names, Words, one_class, refuse_unknown
from knowngood.store.engine import Session
from knowngood.store.queries import load_builds
from knowngood.web.errors import InvalidParameter
from knowngood.web.pagination import (
    Paging,
    SortKey,
    answer,
    both_ways,
    by_release,
    in_parts,
    one_of,
    order_of,
    part_of,
)
from knowngood.web.request_context import Context

router = APIRouter(tags=["builds"])

_ID: SortKey[Build] = by_release(lambda build: build.id)
_SORTS: dict[str, SortKey[Build]] = {
    "id": _ID,
    "as_of": SortKey(lambda build: build.as_of.isoformat()),
    "released": SortKey(lambda build: build.released.isoformat() if build.released else None),
    "origin": SortKey(lambda build: build.origin),
}

# An address makes a space of the `+` of a local version: "==2.6.0 cu124".
_LOST_PLUS = re.compile(r"(?<=[0-9]) (?=[a-z])")


class BuildsQuery(Paging):
    torch: Annotated[
        Words, Field(description="Only builds whose torch is within this PEP 440 specifier, like >=2.6,<2.8")
    ] = ""
    origin: Annotated[Names, Field(description="Only builds with wheels of these origins: default, or a torch backend")]
    python: Annotated[Names, Field(description="Only builds with these Pythons, like 3.11")]
    mismatched: Annotated[bool | None, Field(description="Whether Triton is another one than that torch's own")] = None
    sort: Annotated[
        Names, one_of(both_ways(_SORTS)), Field(description="By id, in the order of releases, where nothing is asked")
    ]
    fields: Annotated[Names, one_of(BuildBody.model_fields), Field(description="Only these fields of each build")]


@router.get("/builds", response_model=in_parts(BuildsBody, "builds"))
def builds(context: Context, query: Annotated[BuildsQuery, Query()]) -> Response:
    """The builds of the catalogue."""
    order = order_of(query.sort, _SORTS, [_ID])
    torch = _specifier(query.torch)

    def show(found: Sequence[Build]) -> Response:
        refuse_unknown("origin", query.origin, {build.origin for build in found}, "origin")
        refuse_unknown("Python", query.python, {build.python for build in found}, "python")
        part = part_of(context.request, (build for build in found if _is_wanted(build, query, torch)), order, query)
        body = BuildsBody(builds=[BuildBody.of(build) for build in part.rows], next=part.next)
        return answer(context, body, "builds", query.fields, part.next, is_paged=query.is_paged)

    return context.answer(load_builds, show)


def _is_wanted(build: Build, query: BuildsQuery, torch: SpecifierSet) -> bool:
    return (
        torch.contains(build.build_id.version, prereleases=True)
        and (not query.origin or build.origin in query.origin)
        and (not query.python or build.python in query.python)
        and query.mismatched in {None, build.is_mismatched}
    )


def _specifier(text: str) -> SpecifierSet:
    try:
        return SpecifierSet(_LOST_PLUS.sub("+", text.strip()))
    except InvalidSpecifier:
        raise InvalidParameter(f'"{text}" is no PEP 440 specifier; write for example >=2.6,<2.8', "torch") from None


@router.get("/builds/{build}", response_model=BuildDetailBody)
def build(context: Context, build: str, hardware: Annotated[Words, Query()] = "") -> Response:
    """One build with every issue on one hardware class."""

    def load(session: Session) -> BuildDetailBody:
        found, _ = find_build(session, build)
        known = context.known(session)
        class_ = one_class(hardware, known.hardware)
        cells = [known.cell(issue, found, class_) for issue in known.issues.values()]
        return build_detail(found, cells, known.wheels.get(found.torch), context.now)

    return context.answer(load, context.json)
