"""`/api/v1/whoami`: does my token count, and for what."""

from datetime import datetime

from fastapi import APIRouter, Response
from pydantic import BaseModel

from knowngood.domain.access import Scope
from knowngood.web.request_context import Context

router = APIRouter(tags=["whoami"])


class WhoBody(BaseModel):
    """Who asks: the name of the token that came along (null: none) and what it may."""

    name: str | None
    scopes: list[Scope]
    expires_at: datetime | None
    reads: str


@router.get("/whoami", response_model=WhoBody)
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
