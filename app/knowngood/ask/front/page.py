"""`/`: what this is, where to paste, how the reader's build stands and where to go from it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice

from fastapi import APIRouter, Request, Response

from knowngood.ask.front.service import IssueStanding, Overview, Standing, Yours, load_overview, usual_class
from knowngood.domain.builds.build import Build
from knowngood.domain.hardware_names import class_named
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.status import FAILING_PROSPECTS, Prospect
from knowngood.domain.vocabulary import VERDICTS
from knowngood.matrix.charts.drawing import BarChart, LifespanChart, lifespan_chart, pass_rate_chart
from knowngood.matrix.overview.moved import moved
from knowngood.move.upgrade.candidates import Message
from knowngood.move.upgrade.ranking import UpgradeAdvice
from knowngood.move.upgrade.wording import because, verdict
from knowngood.serialization.marks import VerdictMark
from knowngood.store.engine import Session
from knowngood.store.queries import RunRow, load_active_run
from knowngood.web.html.status_labels import shown, word_of
from knowngood.web.my_build import MY_BUILD, MyBuild, shared_address
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API, FRONT, MATRIX, asking, cell_address, issue_address, run_address

router = APIRouter(include_in_schema=False)


# In sight without scrolling; the others are a link away.
_WARNINGS, _TURNS = 3, 3


@dataclass(frozen=True)
class IssueLine:
    """One issue on the build that the page is about."""

    title: str
    address: str
    component: str
    severity: str
    word: str


@dataclass(frozen=True)
class TurnLine:
    title: str
    address: str
    build: str
    hardware: str
    after: VerdictMark


@dataclass(frozen=True)
class AdviceLine:
    """`verdict` is the first sentence of `/upgrade`, `because` the next."""

    verdict: str
    because: str


@dataclass(frozen=True)
class YoursView:
    """The build that the page is about. `is_example` where the reader chose none that can be told of; `failing` leaves
    out what passes `as_reported`; `from_cpu` of its `answers` were measured on the CPU.
    """

    build: Build
    hardware: str
    is_example: bool
    failing: int
    helped: int
    as_reported: int
    passes: int
    not_known: int
    answers: int
    from_cpu: int
    matrix_address: str
    advice: AdviceLine | None
    upgrade_address: str
    warnings: tuple[IssueLine, ...]
    more_warnings: int
    warnings_address: str
    lifespans: LifespanChart
    shared_address: str


@dataclass(frozen=True)
class FrontPage:
    """`unknown` is what the reader said to have and the catalogue lacks (empty: nothing), `wheel` what is to be said
    first of their wheel and GPU (empty: nothing). `rates` has a chart for each hardware class.
    """

    issues: int
    builds: int
    hardware: tuple[str, ...]
    newest: datetime | None
    yours: YoursView | None
    unknown: tuple[str, ...]
    wheel: str
    turns: tuple[TurnLine, ...]
    changed: int
    rates: tuple[BarChart, ...]
    active: RunRow | None
    my_build_address: str
    active_address: str
    json_address: str


@router.get(FRONT)
def front(context: Context, request: Request) -> Response:
    def load(session: Session) -> tuple[Overview, ReaderBuild, RunRow | None]:
        own = _reader_build(context.mine, context.known(session))
        overview = load_overview(session, context.state, context.now, own.build, own.hardware)
        return overview, own, load_active_run(session)

    found = moved(request)
    return found or context.answer(load, lambda loaded: context.page("front.html", front_page(context, *loaded)))


@dataclass(frozen=True)
class ReaderBuild:
    """The reader's build and class, of what is known here; `unknown` is what they said beside that, `wheel` what the
    wheel's list says against their GPU.
    """

    build: Build | None
    hardware: str
    unknown: tuple[str, ...]
    wheel: str = ""


def _reader_build(mine: MyBuild, known: Known) -> ReaderBuild:
    build, hardware = mine.build_among(known.builds), mine.hardware_among(known.hardware)
    unknown = (mine.build if build is None else "", "" if hardware else mine.hardware)
    wheel = known.against(build, class_named(mine.hardware, known.hardware)) if build else ""
    return ReaderBuild(build, hardware or usual_class(known), tuple(one for one in unknown if one), wheel)


def front_page(context: RequestContext, found: Overview, own: ReaderBuild, active: RunRow | None) -> FrontPage:
    """Everything templates/front.html shows, as values."""
    return FrontPage(
        issues=len(found.catalogue),
        builds=found.builds,
        hardware=found.hardware,
        newest=found.newest,
        yours=_yours(context, found.yours, own) if found.yours else None,
        unknown=own.unknown,
        wheel=own.wheel,
        turns=tuple(islice(_turns(context, found), _TURNS)),
        changed=found.news.cells,
        rates=tuple(pass_rate_chart(context, one) for one in found.rates),
        active=active,
        active_address=run_address(active.id) if active else "",
        my_build_address=MY_BUILD,
        json_address=asking(f"{API}/overview", build=own.build.id if own.build else "", hardware=own.hardware),
    )


def _yours(context: RequestContext, yours: Yours, own: ReaderBuild) -> YoursView:
    standing = yours.standing
    build, hardware, counts = standing.build, standing.hardware, standing.counts
    line = partial(_line, context)
    return YoursView(
        build=build,
        hardware=hardware,
        is_example=own.build is None,
        failing=counts[Prospect.FAILS] + counts[Prospect.NEEDS_WORKAROUND],
        helped=counts[Prospect.NEEDS_WORKAROUND],
        as_reported=counts[Prospect.AS_REPORTED],
        passes=counts[Prospect.PASSES],
        not_known=counts[Prospect.NOT_KNOWN],
        answers=sum(counts[one] for one in (*FAILING_PROSPECTS, Prospect.PASSES)),
        from_cpu=yours.from_cpu,
        matrix_address=_column(standing),
        advice=_advice(context, yours.advice) if yours.advice else None,
        upgrade_address=asking("/upgrade", **{"from": build.id, "hardware": hardware}),
        warnings=tuple(map(line, yours.watch_out[:_WARNINGS])),
        more_warnings=len(yours.watch_out[_WARNINGS:]),
        warnings_address=_column(standing, _WARNED),
        lifespans=lifespan_chart(context, yours.lifespans, build=build.id),
        shared_address=shared_address(FRONT, build.id, hardware),
    )


# The issues that `service.Yours.watch_out` has, and some that fail differently, as a query of the matrix.
_WARNED = "silent:yes severity:>=high status:affected,flaky,different_failure"


def _advice(context: RequestContext, advice: UpgradeAdvice) -> AdviceLine:
    def say(said: Message) -> str:
        return context.say(said.words, **said.values)

    return AdviceLine(verdict(advice, say), because(advice, say, context.say(", "), context.say(". ")))


def _line(context: RequestContext, one: IssueStanding) -> IssueLine:
    issue, cell = one.issue, one.cell
    return IssueLine(
        title=context.title_of(issue),
        address=issue_address(issue.id, build=cell.build, hardware=cell.hardware),
        component=issue.component,
        severity=context.say(issue.severity.value),
        word=word_of(cell, context.language),
    )


def _turns(context: RequestContext, found: Overview) -> Iterator[TurnLine]:
    """The newest change of each issue."""
    turns = (turn for change in found.news.changes for turn in change.turns)
    newest = {turn.issue: turn for turn in reversed(list(turns))}
    for turn in reversed(newest.values()):
        issue = found.catalogue.get(turn.issue)
        yield TurnLine(
            title=context.title_of(issue) if issue else turn.issue,
            address=cell_address(turn.issue, turn.build, turn.hardware),
            build=turn.build,
            hardware=turn.hardware,
            after=shown(VERDICTS[turn.after], context.language),
        )


def _column(one: Standing, query: str = "") -> str:
    """The matrix with this column alone."""
    return asking(MATRIX, builds=one.build.id, hardware=one.hardware, q=query)
