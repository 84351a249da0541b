"""`/api/v1/audit`: who changed what. For administrators."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from knowngood.domain.access import Scope
from knowngood.store.audit_log import AuditRow, load_audit
from knowngood.store.engine import reading
from knowngood.web.auth.principal import require
from knowngood.web.request_context import Context, uncached

router = APIRouter(tags=["audit"])


class AuditBody(BaseModel):
    """Newest first. `before` asks for those older than the last id."""

    entries: list[AuditRow]


class AuditQuery(BaseModel, extra="forbid"):
    """Paging of the log."""

    before: Annotated[int | None, Field(ge=1, le=2**62, description="Only entries with a smaller id")] = None
    limit: Annotated[int, Field(ge=1, le=1000, description="At most so many, the newest")] = 100


@router.get("/audit", response_model=AuditBody)
def audit(context: Context, request: Request, query: Annotated[AuditQuery, Query()]) -> Response:
    """Who changed tokens, watch lists, results or what people say of cells. Needs the scope admin."""
    require(request, Scope.ADMIN)
    with reading(context.state.engine) as session:
        rows = load_audit(session, query.limit, query.before)
    return uncached(context.json(AuditBody(entries=list(rows))))
