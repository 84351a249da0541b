"""`/charts`: what is known as pictures, each with its table and its data; and the data as CSV."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from knowngood.domain.verdicts.known import Known
from knowngood.matrix.charts.api import ChartsQuery, LifespansQuery, lifespans_csv, pass_rate_csv, select_lifespans
from knowngood.matrix.charts.drawing import CHARTS, pass_rate_chart
from knowngood.matrix.charts.numbers import pass_rate
from knowngood.web.html.grid import Choice
from knowngood.web.request_context import Context, RequestContext

router = APIRouter(include_in_schema=False)


_CSV = "text/csv; charset=utf-8"


@router.get(CHARTS)
def charts(context: Context, query: Annotated[ChartsQuery, Query()]) -> Response:
    return context.answer(
        lambda session: charts_page(context, query, context.known(session)),
        lambda page: context.page("charts.html", page),
    )


@router.get(f"{CHARTS}/pass-rate.csv")
def pass_rates_as_csv(context: Context, query: Annotated[ChartsQuery, Query()]) -> Response:
    return _csv(
        context,
        lambda known: pass_rate_csv(pass_rate(known, class_) for class_ in query.classes(known)),
        "pass-rate.csv",
    )


@router.get(f"{CHARTS}/lifespans.csv")
def lifespans_as_csv(context: Context, query: Annotated[LifespansQuery, Query()]) -> Response:
    return _csv(context, lambda known: lifespans_csv(select_lifespans(known, query)), "lifespans.csv")


def _csv(context: RequestContext, write: Callable[[Known], bytes], name: str) -> Response:
    return context.answer(
        lambda session: write(context.known(session)),
        lambda written: Response(written, media_type=_CSV, headers=context.attached(name)),
    )


def charts_page(context: RequestContext, query: ChartsQuery, known: Known) -> dict[str, Any]:
    """`charts` has one for each class, and `address` is that of the query."""
    return {
        "charts": tuple(pass_rate_chart(context, pass_rate(known, class_)) for class_ in query.classes(known)),
        "choices": (
            Choice(context.say("all measured"), CHARTS, is_chosen=not query.hardware),
            *(
                Choice(class_, f"{CHARTS}?hardware={class_}", list(query.hardware) == [class_])
                for class_ in known.hardware
            ),
        ),
        "address": f"{CHARTS}?hardware={','.join(query.hardware)}" if query.hardware else CHARTS,
    }
