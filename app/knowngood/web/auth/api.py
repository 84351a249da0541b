"""`/api/v1/whoami`: does my token count, and for what."""

from fastapi import APIRouter, Response

from knowngood.web.auth.schemas import WhoBody
from knowngood.web.request_context import Context

router = APIRouter(tags=["whoami"])


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
