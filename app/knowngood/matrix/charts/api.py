"""`/api/v1/charts`: the numbers that the charts draw. `/api/v1/lifespans`: those of the issues' bars."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from knowngood.matrix.charts.pass_rate import pass_rate
from knowngood.matrix.charts.schemas import ChartsBody, ClassChartsBody, LifespansBody, lifespan_body
from knowngood.matrix.charts.service import ChartsQuery, LifespansQuery, lifespans_asked
from knowngood.store.engine import Session
from knowngood.web.request_context import Context

router = APIRouter(tags=["charts"])


@router.get("/charts", response_model=ChartsBody)
def charts(context: Context, query: Annotated[ChartsQuery, Query()]) -> Response:
    """By hardware class and measured release: how many issues stand how."""

    def load(session: Session) -> ChartsBody:
        known = context.known(session)
        return ChartsBody(classes=[ClassChartsBody.of(pass_rate(known, one)) for one in query.classes(known)])

    return context.answer(load, context.json)


@router.get("/lifespans", response_model=LifespansBody)
def lifespans(context: Context, query: Annotated[LifespansQuery, Query()]) -> Response:
    """How each issue stands on each measured release: what the bars of the pages draw. Issues that exist on none of the
    releases are left out.
    """
    return context.answer(
        lambda session: lifespans_asked(context.known(session), query),
        lambda found: context.json(LifespansBody(lifespans=[lifespan_body(one) for one in found])),
    )
