"""`/api/v1/attempts`: the evidence of an issue, newest first, and all there is of one attempt."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from knowngood.domain.hardware_classes import with_isa_classes
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.matrix.evidence.attempt_schemas import AttemptBody, AttemptListedBody, AttemptsBody
from knowngood.matrix.lookups import find_attempt, find_issue
from knowngood.matrix.overview.selection import Names, Several, Words, known_classes, named_builds
from knowngood.store.engine import Session
from knowngood.store.queries import AttemptRow, load_builds, load_hardware, load_recent_attempts
from knowngood.web.pagination import Paging, answer, in_parts, newest_after, next_of, one_of
from knowngood.web.request_context import Context

router = APIRouter(tags=["attempts"])


class AttemptsQuery(Paging):
    issue: Annotated[Words, Field(description="The issue's id")]
    builds: Annotated[Names, Field(description="Only attempts on these builds: ids, or versions of torch")]
    hardware: Annotated[Names, Field(description="Only attempts on these hardware classes")]
    outcome: Annotated[Several[Outcome], Field(description="Only attempts that count, and with one of these outcomes")]
    fields: Annotated[Names, one_of(AttemptListedBody.model_fields), Field(description="Only these fields of each")]


@router.get("/attempts", response_model=in_parts(AttemptsBody, "attempts"))
def attempts(context: Context, query: Annotated[AttemptsQuery, Query()]) -> Response:
    """The attempts of one issue, newest first, 100 where no limit is given; superseded ones too."""
    after = newest_after(context.request, query.cursor)

    def load(session: Session) -> Sequence[AttemptRow]:
        issue = find_issue(session, query.issue)
        builds = [build.id for build in named_builds(load_builds(session), query.builds)] if query.builds else None
        classes = known_classes(query.hardware, with_isa_classes(load_hardware(session))) if query.hardware else None
        return load_recent_attempts(
            session,
            issue.id,
            query.most + 1,
            builds=builds,
            hardware=classes,
            counts_as=query.outcome or None,
            after=after,
        )

    def show(found: Sequence[AttemptRow]) -> Response:
        shown, next_ = next_of(
            context.request, found, query.most, lambda row: (row.attempt.finished_at, row.attempt.id)
        )
        body = AttemptsBody(attempts=[AttemptListedBody.of(row) for row in shown], next=next_)
        return answer(context, body, "attempts", query.fields, next_, is_paged=True)

    return context.answer(load, show)


@router.get("/attempts/{attempt}", response_model=AttemptBody)
def attempt(context: Context, attempt: str) -> Response:
    """All evidence of one attempt, as measured, with today's judgement of it."""
    return context.answer(
        lambda session: find_attempt(session, attempt), lambda detail: context.json(AttemptBody.of(detail))
    )
