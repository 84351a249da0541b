"""`/embed/issues/{id}`: an issue's lifespan to be shown in other pages. The one page that others may frame."""

from fastapi import APIRouter, Response

from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.known import Known
from knowngood.matrix.charts.drawing import lifespan_chart
from knowngood.matrix.charts.lifespans import lifespans_by_class
from knowngood.matrix.lookups import find_issue
from knowngood.store.engine import Session
from knowngood.web.middleware.headers import FRAMED_CONTENT_SECURITY_POLICY
from knowngood.web.request_context import Context

router = APIRouter(include_in_schema=False)


@router.get("/embed/issues/{issue}")
def embed(context: Context, issue: str) -> Response:
    def load(session: Session) -> tuple[Issue, Known]:
        return find_issue(session, issue), context.known(session)

    def show(read: tuple[Issue, Known]) -> Response:
        found, known = read
        classes = [one for one in known.hardware if known.was_measured(found.id, one)]
        chart = lifespan_chart(context, lifespans_by_class(found, known, classes), has_cells=False, by_class=True)
        return context.page("_embed.html", {"issue": found, "lifespans": chart})

    response = context.answer(load, show)
    # Also on a 304: a browser takes its headers over into the copy that it keeps.
    response.headers["Content-Security-Policy"] = FRAMED_CONTENT_SECURITY_POLICY
    return response
