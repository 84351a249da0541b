"""`/`: what this is, where to ask, the recent releases, and what is new and still wrong in the newest."""

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from knowngood.ask.front.service import Overview, load_overview, usual_class
from knowngood.ask.lookup.page import own_environment
from knowngood.domain.builds.build import Build
from knowngood.domain.hardware_names import class_named, name_of_class
from knowngood.domain.message import Message
from knowngood.domain.verdicts.known import Known
from knowngood.matrix.charts.drawing import lifespan_chart
from knowngood.matrix.charts.numbers import lifespans_of
from knowngood.matrix.overview.page import redirect_old_address
from knowngood.store.counters import Tending, load_tending
from knowngood.store.engine import Session
from knowngood.store.knowledge.model import Knowledge
from knowngood.store.queries import RunRow, load_active_run
from knowngood.web.my_build import MyBuild
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API, FRONT

router = APIRouter(include_in_schema=False)


@router.get(FRONT)
def front(context: Context, request: Request) -> Response:
    def load(session: Session) -> tuple[Overview, Knowledge, RunRow | None, Tending]:
        knowledge = context.state.knowledge.load(session, context.now).knowledge
        return load_overview(session, knowledge.known), knowledge, load_active_run(session), load_tending(session)

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
    context: RequestContext, overview: Overview, knowledge: Knowledge, active: RunRow | None, tending: Tending
) -> Response:
    known = knowledge.known
    own, hardware = _reader_build(context.mine, known), usual_class(known)
    severe = lifespans_of([known.issues[id_] for id_ in overview.severe], known, hardware)
    return context.page(
        "front.html",
        overview,
        own=own,
        environment=own_environment(context, knowledge),
        active=active,
        tending=tending,
        issues=known.issues,
        names=list(map(name_of_class, overview.hardware)),
        class_of_bars=hardware,
        lifespan_chart=lifespan_chart(context, severe, build=own.build.id if own.build else ""),
        json_address=f"{API}/overview",
    )
