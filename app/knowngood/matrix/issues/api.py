"""`/api/v1/issues`: the catalogue, and one issue with its history and measured cells."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from knowngood.domain.issue import Culprit, Device, Issue, Severity, Status
from knowngood.domain.verdicts.known import Known
from knowngood.matrix.issues.schemas import IssueBody, IssueDetailBody, IssuesBody, issue_detail, issues_body
from knowngood.matrix.lookups import find_issue
from knowngood.matrix.overview.selection import Names, Several, Words, refuse_unknown, speaks_of
from knowngood.store.queries import load_issues
from knowngood.web.pagination import (
    Paging,
    SortKey,
    answer,
    both_ways,
    by_rank,
    in_parts,
    one_of,
    order_of,
    part_of,
)
from knowngood.web.request_context import Context

router = APIRouter(tags=["issues"])

_ID: SortKey[Issue] = SortKey(lambda issue: issue.id)
_SORTS: dict[str, SortKey[Issue]] = {
    "id": _ID,
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
    sort: Annotated[Names, one_of(both_ways(_SORTS)), Field(description="By id where nothing is asked; - turns round")]
    fields: Annotated[Names, one_of(IssueBody.model_fields), Field(description="Only these fields of each issue")]


@router.get("/issues", response_model=in_parts(IssuesBody, "issues"))
def issues(context: Context, query: Annotated[IssuesQuery, Query()]) -> Response:
    """The catalogue's issues."""
    order = order_of(query.sort, _SORTS, [_ID])

    def show(found: Sequence[Issue]) -> Response:
        refuse_unknown("component", query.component, {issue.component for issue in found}, "component")
        part = part_of(context.request, (issue for issue in found if _is_wanted(issue, query)), order, query)
        body = issues_body(part.rows, part.next)
        return answer(context, body, "issues", query.fields, part.next, is_paged=query.is_paged)

    return context.answer(load_issues, show)


def _is_wanted(issue: Issue, query: IssuesQuery) -> bool:
    asked = (
        (query.component, issue.component),
        (query.culprit, issue.culprit),
        (query.severity, issue.severity),
        (query.status, issue.status),
        (query.device, issue.requires.device),
    )
    return (
        all(not words or word in words for words, word in asked)
        and query.silent in {None, issue.silent}
        and speaks_of(issue, query.q)
    )


@router.get("/issues/{issue}", response_model=IssueDetailBody)
def issue(context: Context, issue: str) -> Response:
    """One issue with its history on every hardware class, and its measured cells."""

    def show(found: Issue, known: Known) -> Response:
        measured = known.stored(found.id)
        histories = {
            hardware: known.history(found.id, hardware) for hardware in sorted({cell.hardware for cell in measured})
        }
        return context.json(issue_detail(found, histories, measured, known.builds, context.now))

    return context.answer(
        lambda session: (find_issue(session, issue), context.known(session)), lambda found: show(*found)
    )
