"""`/api/v1/whoami`: does my token count, and for what. `/api/v1/audit`: who changed what, for administrators."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from knowngood.domain.access import Scope
from knowngood.store.audit_log import AuditRow, load_audit
from knowngood.store.engine import reading
from knowngood.web.auth.principal import require
from knowngood.web.request_context import Context, uncached

router = APIRouter()


class WhoBody(BaseModel):
    """Who asks: the name of the token that came along (null: none) and what it may."""

    name: str | None
    scopes: list[Scope]
    expires_at: datetime | None
    reads: str


@router.get("/whoami", tags=["whoami"], response_model=WhoBody)
async def whoami(context: Context) -> Response:
    """A token that does not count is answered with 401."""
    token = context.principal.token
    reads = "token" if context.state.rules.reads_need_token else "open"
    body = WhoBody(
        name=token.name if token else None,
        scopes=list(token.scopes) if token else [],
        expires_at=token.expires_at if token else None,
        reads=reads,
    )
    return Response(body.model_dump_json(), media_type="application/json", headers={"Cache-Control": "no-store"})


class AuditBody(BaseModel):
    """Newest first. `before` asks for those older than the last id."""

    entries: list[AuditRow]


class AuditQuery(BaseModel, extra="forbid"):
    """Paging of the log."""

    before: Annotated[int | None, Field(ge=1, le=2**62, description="Only entries with a smaller id")] = None
    limit: Annotated[int, Field(ge=1, le=1000, description="At most so many, the newest")] = 100


@router.get("/audit", tags=["audit"], response_model=AuditBody)
def audit(context: Context, request: Request, query: Annotated[AuditQuery, Query()]) -> Response:
    """Who changed tokens, watch lists, results or what people say of cells. Needs the scope admin."""
    require(request, Scope.ADMIN)
    with reading(context.state.engine) as session:
        rows = load_audit(session, query.limit, query.before)
    return uncached(context.json(AuditBody(entries=list(rows))))
