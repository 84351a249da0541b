"""`/api/v1/upgrade`: which build to move to, as JSON."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import ConfigDict

from app.formats.question import BadField
from app.web.errors import BadQuestion
from app.web.shapes.upgrade import UpgradeBody, upgrade_body
from app.web.upgrading import UpgradeQuery, advice_on
from app.web.visit import Visiting

router = APIRouter()


class UpgradeApiQuery(UpgradeQuery):
    """A misspelt parameter would silently widen the answer, so it is refused."""

    model_config = ConfigDict(extra="forbid")


@router.get("/upgrade", response_model=UpgradeBody)
def upgrade(visit: Visiting, query: Annotated[UpgradeApiQuery, Query()]) -> Response:
    """Newer builds ranked for what is watched, under constraints: what each fixes, breaks and leaves open, and why."""
    edition = visit.knowing()
    try:
        advice = advice_on(query.asked, edition.grounds, visit.house)
    except BadField as error:
        raise BadQuestion(error.message, error.field) from None
    return visit.json(upgrade_body(advice))
