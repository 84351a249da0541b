"""`/`: what this is, where to paste, how the reader's build stands and where to go from it."""

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request, Response

from knowngood.ask.front.service import Overview, Yours, load_overview, usual_class
from knowngood.ask.lookup.page import own_environment
from knowngood.domain.builds.build import Build
from knowngood.domain.hardware_names import class_named
from knowngood.domain.message import Message
from knowngood.domain.verdicts.known import Known
from knowngood.matrix.charts.drawing import lifespan_chart, pass_rate_chart
from knowngood.matrix.overview.page import redirect_old_address
from knowngood.move.upgrade.wording import because, verdict
from knowngood.store.counters import Tending, load_tending
from knowngood.store.engine import Session
from knowngood.store.queries import RunRow, load_active_run
from knowngood.web.my_build import MyBuild, shared_address
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API, FRONT, MATRIX, asking, upgrade_address

router = APIRouter(include_in_schema=False)


@router.get(FRONT)
def front(context: Context, request: Request) -> Response:
    def load(session: Session) -> tuple[Overview, ReaderBuild, RunRow | None, Tending]:
        own = _reader_build(context.mine, context.known(session))
        overview = load_overview(session, context.state, context.now, own.build, own.hardware)
        return overview, own, load_active_run(session), load_tending(session)

    return redirect_old_address(request) or context.answer(load, lambda loaded: _page(context, *loaded))


@dataclass(frozen=True)
class ReaderBuild:
    """The reader's build and class, of what is known here; `unknown` is what they said beside that, `wheel` what the
    wheel's list says against their GPU.
    """

    build: Build | None
    hardware: str
    unknown: tuple[str, ...]
    wheel: Message | None = None


def _reader_build(mine: MyBuild, known: Known) -> ReaderBuild:
    build, hardware = mine.build_among(known.builds), mine.hardware_among(known.hardware)
    unknown = (mine.build if build is None else "", "" if hardware else mine.hardware)
    wheel = known.against(build, class_named(mine.hardware, known.hardware)) if build else None
    return ReaderBuild(build, hardware or usual_class(known), tuple(name for name in unknown if name), wheel)


def _page(
    context: RequestContext, overview: Overview, own: ReaderBuild, active: RunRow | None, tending: Tending
) -> Response:
    return context.page(
        "front.html",
        overview,
        own=own,
        environment=own_environment(context),
        active=active,
        tending=tending,
        rates=[pass_rate_chart(context, rate) for rate in overview.rates],
        json_address=asking(f"{API}/overview", build=own.build.id if own.build else "", hardware=own.hardware),
        **(_values_of(context, overview.yours) if overview.yours else {}),
    )


def _values_of(context: RequestContext, yours: Yours) -> dict[str, Any]:
    """Values that the template cannot read off `yours`."""
    build, hardware = yours.standing.build, yours.standing.hardware
    advice = yours.advice

    return {
        "verdict": context.write(verdict(advice)) if advice else "",
        "because": context.write(because(advice)) if advice else "",
        "lifespan_chart": lifespan_chart(context, yours.lifespans, build=build),
        "column_address": asking(MATRIX, builds=build, hardware=hardware),
        "warned_address": asking(MATRIX, builds=build, hardware=hardware, q=_WARNED),
        "upgrade_address": upgrade_address(build, hardware=hardware),
        "shared_address": shared_address(FRONT, build, hardware),
    }


# The issues that `service.Yours.watch_out` has, and some that fail differently, as a query of the matrix.
_WARNED = "silent:yes severity:>=high status:affected,flaky,different_failure"
