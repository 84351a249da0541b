"""`/healthz`: the process answers. `/readyz`: it can also read a database of this release, follows it, and goes on."""

from fastapi import APIRouter, Request
from pydantic import BaseModel

from knowngood.app.store.engine import require_current
from knowngood.app.web.api_responses import REFUSALS
from knowngood.app.web.app_state import state_of
from knowngood.app.web.errors import Stopping

router = APIRouter(tags=["health"])


class HealthBody(BaseModel):
    status: str


@router.get("/healthz")
async def healthz() -> HealthBody:
    """Asks nobody and waits for no thread: all of them may be busy with the store, and the process lives."""
    return HealthBody(status="ok")


@router.get("/readyz", responses={503: REFUSALS[503]})
def readyz(request: Request) -> HealthBody:
    state = state_of(request.app)
    if state.streams.is_stopping:
        raise Stopping("this server was asked to stop and answers only what is asked now; another one is ready")
    require_current(state.engine)
    state.knowledge.now()
    if state.knowledge.is_behind:
        return HealthBody(
            status=f"ready, but the gate knows nothing newer than {state.knowledge.known_at}; see the log"
        )
    return HealthBody(status="ready")
