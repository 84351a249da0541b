"""`/api/v1/whoami`: does my token count, and for what."""

from fastapi import APIRouter, Response

from knowngood.app.web.auth.schemas import WhoBody
from knowngood.app.web.request_context import Context

router = APIRouter(tags=["whoami"])


@router.get("/whoami", response_model=WhoBody)
async def whoami(context: Context) -> Response:
    """A token that does not count is answered with 401."""
    token = context.principal.token
    reads = "token" if context.state.rules.reads_need_token else "open"
    if token is None:
        body = WhoBody(name=None, scopes=[], expires_at=None, reads=reads)
    else:
        body = WhoBody(name=token.name, scopes=list(token.scopes), expires_at=token.expires_at, reads=reads)
    return Response(body.model_dump_json(), media_type="application/json", headers={"Cache-Control": "no-store"})
