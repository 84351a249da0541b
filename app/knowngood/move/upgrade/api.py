"""`/api/v1/upgrade`: which build to move to, as JSON."""

from fastapi import APIRouter, Response

from knowngood.move.schemas import UpgradeBody, upgrade_body
from knowngood.move.upgrade.service import Requested, advice_on
from knowngood.web.request_context import Context

router = APIRouter(tags=["upgrade"])


@router.get("/upgrade", response_model=UpgradeBody)
def upgrade(context: Context, request: Requested) -> Response:
    """Newer builds ranked for what is watched, under constraints: what each fixes, breaks and leaves open, and why."""
    return context.answer_from_in_turn(
        lambda snapshot: context.json(upgrade_body(advice_on(request, snapshot.knowledge, context.state)))
    )
