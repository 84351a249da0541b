"""`/api/v1/compare`: what becomes of each issue from one build to another. Page and Markdown are asked for it alike:
one set of parameters, and one reading of them.
"""

from dataclasses import replace
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import Cell
from knowngood.gate.request import BadField
from knowngood.matrix.overview.selection import Names, Words, one_class, read_condition, refuse_unknown
from knowngood.move.compare.comparison import CompareRequest, Comparison, read_comparison
from knowngood.move.schemas import CompareBody, compare_body
from knowngood.query.evaluate import View, matching
from knowngood.query.parser import LONGEST as LONGEST_QUERY
from knowngood.query.parser import Query as AskedQuery
from knowngood.web.errors import NotFound
from knowngood.web.request_context import Context
from knowngood.web.urls import compare_address


def _narrowed(
    *,
    hardware: Annotated[Words, Query(description="One hardware class; the CPU class where none is named")] = "",
    issues: Annotated[
        Names,
        Query(default_factory=list, description="Issue ids, repeated or comma-separated; `all` for all of them"),
    ],
    component: Annotated[Words, Query(description="Only issues of this component")] = "",
    q: Annotated[
        str,
        Query(
            max_length=LONGEST_QUERY,
            description="A query of issues and of these two builds: `affected` keeps what fails on "
            "either. Bare words stand in an issue's id, title or component",
        ),
    ] = "",
) -> CompareRequest:
    return CompareRequest(hardware, tuple(issues), component, q)


Narrowed = Annotated[CompareRequest, Depends(_narrowed)]


def _of_two_builds(
    narrowed: Narrowed,
    a: Annotated[Words, Query(description="The build that is left: its id, or a version of torch")],
    b: Annotated[Words, Query(description="The build that is moved to")],
) -> CompareRequest:
    return replace(narrowed, a=a, b=b)


OfTwoBuilds = Annotated[CompareRequest, Depends(_of_two_builds)]


def comparison_of(request: CompareRequest, known: Known, now: datetime) -> Comparison:
    """Raises NotFound for builds we do not have, which leads to the same comparison with the nearest ones in their
    place, and BadField or InvalidParameter for the rest.
    """
    hardware = one_class(request.hardware, known.hardware)
    try:
        compared = read_comparison(replace(request, hardware=hardware), known, now)
    except BadField as error:
        if error.field not in {"a", "b"}:
            raise
        sides = {"a": request.a, "b": request.b}
        near = [(name, _address(request, **{**sides, error.field: name})) for name in error.nearest]
        offered = near or [("choose two builds", _address(request, a="", b=""))]
        raise NotFound(f"{error.field}: {error.problem}", offered) from None
    if request.component:
        refuse_unknown(
            "component", [request.component], {issue.component for issue in known.issues.values()}, "component"
        )
    return _narrowed_to(compared, request.component, read_condition(request.q), now)


def _address(request: CompareRequest, *, a: str, b: str) -> str:
    return compare_address(a, b, **request.narrowing)


def _narrowed_to(compared: Comparison, component: str, query: AskedQuery, now: datetime) -> Comparison:
    """The pairs that a query selects, which looks at them as at a matrix of these two columns."""
    pairs = {pair.issue.id: pair for pair in compared.pairs if component in {"", pair.issue.component}}
    before, after = compared.before, compared.after
    builds = tuple(sorted({before.id: before, after.id: after}.values(), key=lambda build: build.build_id))

    def cells_of(issue: Issue) -> list[list[Cell]]:
        cells = {before.id: pairs[issue.id].before, after.id: pairs[issue.id].after}
        return [[cells[build.id] for build in builds]]

    selected = {
        issue.id for issue in matching(query, [pair.issue for pair in pairs.values()], View(builds, now), cells_of)
    }
    return replace(compared, pairs=tuple(pair for id_, pair in pairs.items() if id_ in selected))


router = APIRouter(tags=["compare"])


@router.get("/compare", response_model=CompareBody)
def compare(context: Context, request: OfTwoBuilds) -> Response:
    """Every issue on both builds, the most severe change first; only a proven pass counts as fixed."""
    return context.answer_in_turn(
        lambda session: comparison_of(request, context.known(session), context.now),
        lambda compared: context.json(compare_body(compared, context.now, request.narrowing)),
    )
