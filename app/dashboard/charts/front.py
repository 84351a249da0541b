"""The charts of the front door: the pass rate of each class, and the lifespans of the most severe issues."""

from dataclasses import dataclass

from knowngood.app.dashboard.charts.drawing import BarChart, LifespanChart, lifespan_chart, pass_rate_chart
from knowngood.app.dashboard.charts.lifespans import lifespans_of, most_severe
from knowngood.app.dashboard.charts.pass_rate import pass_rate
from knowngood.app.domain.verdicts.known import Known
from knowngood.app.web.request_context import RequestContext

_MOST = 12


@dataclass(frozen=True)
class FrontCharts:
    """The lifespans are of `hardware`, and there are `count` in all."""

    rates: tuple[BarChart, ...]
    lifespans: LifespanChart
    hardware: str
    count: int


def front_charts(context: RequestContext, known: Known, hardware: str, build: str = "") -> FrontCharts:
    """Lifespans are of the one class. `build` is the reader's own (empty: none), whose column is marked."""
    spans = lifespans_of(known.issues.values(), known, hardware)
    return FrontCharts(
        rates=tuple(pass_rate_chart(context, pass_rate(known, one)) for one in known.hardware),
        lifespans=lifespan_chart(context, spans, most_severe(spans, _MOST), build=build),
        hardware=hardware,
        count=len(spans.rows),
    )
