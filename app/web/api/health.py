"""`/healthz`: the process answers. `/readyz`: it can also read a database of this release."""

from fastapi import APIRouter, Request

from app.store.session import require_current
from app.web.api.answers import REFUSALS
from app.web.shapes.health import HealthBody

router = APIRouter(tags=["health"])


@router.get("/healthz")
def healthz() -> HealthBody:
    return HealthBody(status="ok")


@router.get("/readyz", responses={503: REFUSALS[503]})
def readyz(request: Request) -> HealthBody:
    require_current(request.app.state.house.engine)
    return HealthBody(status="ready")
