"""`/api/v1/upgrade`: which build to move to, as JSON."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from knowngood.domain.errors import BadField
from knowngood.move.upgrade.schemas import UpgradeBody, upgrade_body
from knowngood.move.upgrade.service import UpgradeQuery, advice_on
from knowngood.store.knowledge.loader import KnowledgeSnapshot
from knowngood.web.errors import InvalidParameter
from knowngood.web.request_context import Context

router = APIRouter(tags=["upgrade"])


class UpgradeApiQuery(UpgradeQuery, extra="forbid"):
    """A misspelt parameter would silently widen the answer, so it is refused."""


@router.get("/upgrade", response_model=UpgradeBody)
def upgrade(context: Context, query: Annotated[UpgradeApiQuery, Query()]) -> Response:
    """Newer builds ranked for what is watched, under constraints: what each fixes, breaks and leaves open, and why."""

    def show(snapshot: KnowledgeSnapshot) -> Response:
        try:
            advice = advice_on(query.asked, snapshot.knowledge, context.state)
        except BadField as error:
            raise InvalidParameter(error.message, error.field) from None
        return context.json(upgrade_body(advice))

    return context.answer_from_in_turn(show)
