"""`/api/v1/audit`: who changed what. For administrators."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from knowngood.app.domain.access import Scope
from knowngood.app.store.audit_log import load_audit
from knowngood.app.store.engine import reading
from knowngood.app.web.auth.principal import require
from knowngood.app.web.request_context import Context

router = APIRouter()


class AuditEntryBody(BaseModel):
    """`token` is the public part of the token that did it; empty at the command line."""

    id: int
    at: datetime
    actor: str
    token: str
    action: str
    subject: str
    data: dict[str, Any]


class AuditBody(BaseModel):
    """Newest first. `before` asks for those older than the last id."""

    entries: list[AuditEntryBody]


class AuditQuery(BaseModel, extra="forbid"):
    """What part of the log."""

    before: Annotated[int | None, Field(ge=1, le=2**62, description="Only entries with a smaller id")] = None
    limit: Annotated[int, Field(ge=1, le=1000, description="At most so many, the newest")] = 100


@router.get("/audit", response_model=AuditBody)
def audit(context: Context, request: Request, query: Annotated[AuditQuery, Query()]) -> Response:
    """Who changed tokens, watch lists, webhooks, results or what people say of cells. Needs the scope admin."""
    require(request, Scope.ADMIN)
    with reading(context.state.engine) as session:
        rows = load_audit(session, query.limit, query.before)
    response = context.json(
        AuditBody(entries=[AuditEntryBody(**{**vars(row), "data": dict(row.data)}) for row in rows])
    )
    response.headers["Cache-Control"] = "no-store"
    return response
