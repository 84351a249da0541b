"""`/api/v1/issues`: the catalogue, and one issue with its history and measured cells.

`/api/v1/builds`: the columns, and one build with every issue on one hardware class.
"""

import re
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import Field

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Culprit, Device, Issue, Severity, Status
from knowngood.domain.issue_selectors import speaks_of
from knowngood.domain.verdicts.known import Known
from knowngood.matrix.lookups import find_build, find_issue
from knowngood.matrix.overview.selection import Names, Several, Words, one_class, refuse_unknown
from knowngood.matrix.schemas import (
    BuildBody,
    BuildDetailBody,
    BuildsBody,
    IssueBody,
    IssueDetailBody,
    IssuesBody,
    build_detail,
    issue_detail,
    issues_body,
)
from knowngood.store.engine import Session
from knowngood.store.queries import load_builds, load_issues
from knowngood.web.errors import InvalidParameter
from knowngood.web.pagination import (
    Paging,
    SortKey,
    answer,
    both_ways,
    by_rank,
    by_release,
    in_parts,
    one_of,
    order_of,
    part_of,
)
from knowngood.web.request_context import Context

router = APIRouter()


_ISSUE_ID: SortKey[Issue] = SortKey(lambda issue: issue.id)
_ISSUE_SORTS: dict[str, SortKey[Issue]] = {
    "id": _ISSUE_ID,
    "title": SortKey(lambda issue: issue.title.casefold()),
    "component": SortKey(lambda issue: issue.component.casefold()),
    "culprit": SortKey(lambda issue: issue.culprit.value),
    "severity": by_rank(lambda issue: issue.severity.value, list(Severity)),
    "status": SortKey(lambda issue: issue.status.value),
}


class IssuesQuery(Paging):
    component: Annotated[Names, Field(description="Only issues of these components")]
    culprit: Annotated[Several[Culprit], Field(description="Only issues with one of these culprits")]
    severity: Annotated[Several[Severity], Field(description="Only issues of these severities")]
    status: Annotated[Several[Status], Field(description="Only issues that are one of these")]
    device: Annotated[Several[Device], Field(description="Only issues that run on one of these")]
    silent: Annotated[bool | None, Field(description="Whether they give wrong numbers without an error")] = None
    q: Annotated[Words, Field(description="Words that must all stand in an issue's id, title or component")] = ""
    sort: Annotated[
        Names, one_of(both_ways(_ISSUE_SORTS)), Field(description="By id where nothing is asked; - turns round")
    ]
    fields: Annotated[Names, one_of(IssueBody.model_fields), Field(description="Only these fields of each issue")]


@router.get("/issues", response_model=in_parts(IssuesBody, "issues"), tags=["issues"])
def issues(context: Context, query: Annotated[IssuesQuery, Query()]) -> Response:
    """The catalogue's issues."""
    order = order_of(query.sort, _ISSUE_SORTS, [_ISSUE_ID])

    def show(all_issues: Sequence[Issue]) -> Response:
        refuse_unknown("component", query.component, {issue.component for issue in all_issues}, "component")
        rows, next_ = part_of(
            context.request, (issue for issue in all_issues if _is_wanted_issue(issue, query)), order, query
        )
        body = issues_body(rows, next_)
        return answer(context, body, "issues", query.fields, next_, is_paged=query.is_paged)

    return context.answer(load_issues, show)


def _is_wanted_issue(issue: Issue, query: IssuesQuery) -> bool:
    conditions = (
        (query.component, issue.component),
        (query.culprit, issue.culprit),
        (query.severity, issue.severity),
        (query.status, issue.status),
        (query.device, issue.requires.device),
    )
    return (
        all(not words or word in words for words, word in conditions)
        and query.silent in {None, issue.silent}
        and speaks_of(issue, query.q)
    )


@router.get("/issues/{issue}", response_model=IssueDetailBody, tags=["issues"])
def issue(context: Context, issue: str) -> Response:
    """One issue with its history on every hardware class, and its measured cells."""

    def show(row: Issue, known: Known) -> Response:
        measured = known.stored(row.id)
        histories = {
            hardware: known.history(row.id, hardware) for hardware in sorted({cell.hardware for cell in measured})
        }
        return context.json(issue_detail(row, histories, measured, known, context.now))

    return context.answer(
        lambda session: (find_issue(session, issue), context.known(session)), lambda loaded: show(*loaded)
    )


_BUILD_ID: SortKey[Build] = by_release(lambda build: build.id)
_BUILD_SORTS: dict[str, SortKey[Build]] = {
    "id": _BUILD_ID,
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
        Names,
        one_of(both_ways(_BUILD_SORTS)),
        Field(description="By id, in the order of releases, where nothing is asked"),
    ]
    fields: Annotated[Names, one_of(BuildBody.model_fields), Field(description="Only these fields of each build")]


@router.get("/builds", response_model=in_parts(BuildsBody, "builds"), tags=["builds"])
def builds(context: Context, query: Annotated[BuildsQuery, Query()]) -> Response:
    """The builds of the catalogue."""
    order = order_of(query.sort, _BUILD_SORTS, [_BUILD_ID])
    torch = _specifier(query.torch)

    def show(all_builds: Sequence[Build]) -> Response:
        refuse_unknown("origin", query.origin, {build.origin for build in all_builds}, "origin")
        refuse_unknown("Python", query.python, {build.python for build in all_builds}, "python")
        rows, next_ = part_of(
            context.request, (build for build in all_builds if _is_wanted_build(build, query, torch)), order, query
        )
        body = BuildsBody(builds=[BuildBody.of(build) for build in rows], next=next_)
        return answer(context, body, "builds", query.fields, next_, is_paged=query.is_paged)

    return context.answer(load_builds, show)


def _is_wanted_build(build: Build, query: BuildsQuery, torch: SpecifierSet) -> bool:
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


@router.get("/builds/{build}", response_model=BuildDetailBody, tags=["builds"])
def build(context: Context, build: str, hardware: Annotated[Words, Query()] = "") -> Response:
    """One build with every issue on one hardware class."""

    def load(session: Session) -> BuildDetailBody:
        named, _ = find_build(session, build)
        known = context.known(session)
        class_ = one_class(hardware, known.hardware)
        cells = [known.cell(issue, named, class_) for issue in known.issues.values()]
        return build_detail(named, cells, known.wheels.get(named.torch), context.now)

    return context.answer(load, context.json)
