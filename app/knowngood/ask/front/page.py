"""`/`: what this is, where to ask, the recent releases, and what is new and still wrong in the newest."""

from fastapi import APIRouter, Request, Response

from knowngood.ask.front.service import Overview, load_overview, usual_class
from knowngood.ask.lookup.page import own_environment
from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.hardware_names import class_named
from knowngood.matrix.charts.drawing import lifespan_chart
from knowngood.matrix.charts.numbers import lifespans_of
from knowngood.matrix.overview.page import redirect_old_address
from knowngood.store.counters import Tending, load_tending
from knowngood.store.engine import Session
from knowngood.store.knowledge.model import Knowledge
from knowngood.store.queries import RunRow, load_active_run
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API, FRONT

router = APIRouter(include_in_schema=False)


@router.get(FRONT)
def front(context: Context, request: Request) -> Response:
    def load(session: Session) -> tuple[Overview, Knowledge, RunRow | None, Tending]:
        knowledge = context.state.knowledge.load(session, context.now).knowledge
        return load_overview(session, knowledge.known), knowledge, load_active_run(session), load_tending(session)

    return redirect_old_address(request) or context.answer(load, lambda loaded: _page(context, *loaded))


def _page(
    context: RequestContext, overview: Overview, knowledge: Knowledge, active: RunRow | None, tending: Tending
) -> Response:
    """`unknown` is what readers said of their build and is not known here, `wheel` what its list says against their
    GPU.
    """
    known, mine = knowledge.known, context.mine
    build, hardware = mine.build_among(known.builds), usual_class(known)
    severe = lifespans_of([known.issues[id_] for id_ in overview.severe], known, hardware)
    return context.page(
        "front.html",
        overview,
        unknown=[
            name
            for name, found in ((mine.build, build), (mine.hardware, mine.hardware_among(known.hardware)))
            if name and not found
        ],
        wheel=known.against(build, class_named(mine.hardware, known.hardware)) if build else None,
        environment=own_environment(context, knowledge),
        active=active,
        tending=tending,
        issues=known.issues,
        names=list(map(plain_name, overview.hardware)),
        class_of_bars=hardware,
        lifespan_chart=lifespan_chart(context, severe, build=build.id if build else ""),
        json_address=f"{API}/overview",
    )
