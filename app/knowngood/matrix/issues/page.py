"""`/issues/{id}`: where it fails, what to do about it on your build, what others claim, and the evidence."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from knowngood.domain.builds.build import Build
from knowngood.domain.hardware_classes import isa_of, whole_classes
from knowngood.domain.issue import Issue, Link, LinkKind, Workaround
from knowngood.domain.message import Message, clauses
from knowngood.domain.verdicts.claims import MeasuredClaim, doubts_about, held_claims
from knowngood.domain.verdicts.history import History
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import (
    Columns,
    choose_columns,
    fold,
    isa_difference,
    rows_of,
    stale_cells,
    telling_build,
    telling_class,
)
from knowngood.domain.verdicts.verdict import Cell, CellPlace
from knowngood.domain.verdicts.workaround_cost import Cost
from knowngood.matrix.charts.drawing import LifespanChart, lifespan_chart
from knowngood.matrix.charts.lifespans import lifespans_by_class
from knowngood.matrix.evidence.reproduce import Commands, Subject, commands
from knowngood.matrix.evidence.service import how_known
from knowngood.matrix.issues.cell_sections import CellSections, sections_of
from knowngood.matrix.issues.evidence_table import SortHead, make_heads, sort_evidence
from knowngood.matrix.issues.workarounds import WorkaroundView, costs_on, elsewhere_of, workarounds_of
from knowngood.matrix.lookups import find_issue
from knowngood.matrix.overview.selection import Words, builds_or_wheels, named_builds, one_class
from knowngood.store.engine import Session, reading
from knowngood.store.evidence.attempt_codec import AttemptSummary, load_glances, load_timed
from knowngood.store.queries import load_builds
from knowngood.web.auth.principal import is_from_elsewhere
from knowngood.web.errors import InvalidParameter
from knowngood.web.html.grid import CellGlyph, Choice, heads_of, squares_of
from knowngood.web.html.status_labels import whole_word
from knowngood.web.my_build import remember
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import (
    asking,
    issue_address,
)

router = APIRouter(include_in_schema=False)

_ATTEMPTS_SHOWN = 15


@dataclass(frozen=True)
class Strip:
    """The line of releases on one hardware class. The sentence is its history, and upstream's claims against it."""

    hardware: str
    history: History
    sentence: Message
    squares: tuple[CellGlyph, ...]


@dataclass(frozen=True)
class Chosen:
    """The build, class and cell that the page is about. `is_remembered` where the reader chose the build before, on
    this or another page.
    """

    build: Build
    hardware: str
    cell: Cell
    is_remembered: bool


@dataclass(frozen=True)
class IssueEvidence:
    """The store's evidence of an issue: all of its cells, and beside them what is read for this page alone."""

    known: Known
    cells: Sequence[Cell]
    chosen: Chosen
    costs: Mapping[str, Cost]
    attempts: Sequence[AttemptSummary]


@dataclass(frozen=True)
class IssuePage:
    issue: Issue
    strips: tuple[Strip, ...]
    leading: tuple[Strip, ...]
    isas: Message | None
    lifespans: LifespanChart
    chosen: Chosen
    builds: tuple[str, ...]
    classes: tuple[Choice, ...]
    word: str
    workarounds: tuple[WorkaroundView, ...]
    elsewhere: tuple[tuple[Workaround, Message | None], ...]
    known: str
    claims: tuple[MeasuredClaim, ...]
    links: Mapping[LinkKind, tuple[Link, ...]]
    evidence: Sequence[Cell]
    stale: Collection[CellPlace]
    evidence_heads: tuple[SortHead, ...]
    attempts: Sequence[AttemptSummary]
    commands: Commands
    sections: CellSections | None


@router.get("/issues/{issue}")
def issue(
    context: Context,
    issue: str,
    build: Annotated[Words, Query()] = "",
    hardware: Annotated[Words, Query()] = "",
    sort: Annotated[Words, Query()] = "",
) -> Response:
    def load(session: Session) -> tuple[Issue, IssueEvidence]:
        row = find_issue(session, issue)
        known = context.known(session)
        builds, cells = known.builds, known.stored(row.id)
        mine = None if build else context.mine.build_among(builds)
        own_class = "" if build else context.mine.hardware_among({cell.hardware for cell in cells})
        chosen = _choose(row, known, cells, mine.id if mine else build, hardware or own_class)
        timed = load_timed(session, row.id, chosen.build.id, chosen.hardware)
        attempts = load_glances(session, row.id, _ATTEMPTS_SHOWN)
        chosen = replace(chosen, is_remembered=mine is not None and not context.mine.is_shared)
        return row, IssueEvidence(known, cells, chosen, costs_on(row, chosen.cell, timed), attempts)

    return context.answer(
        load,
        lambda loaded: context.page("issue.html", issue_page(context, *loaded, build, sort)),
    )


@router.get("/issues/{issue}/use")
def use(
    request: Request,
    context: Context,
    issue: str,
    build: Annotated[Words, Query()] = "",
    hardware: Annotated[Words, Query()] = "",
) -> Response:
    """Keep the reader's build in a cookie and lead to its workarounds. A link: it works without scripts.

    No build means none in particular: what was kept is forgotten. A link of another site leads there and keeps nothing.
    """
    with reading(context.state.engine) as session:
        id_ = named_builds(load_builds(session), [build], "build")[0].id if build else ""
    response = RedirectResponse(
        f"{issue_address(issue, build=id_, hardware=hardware)}#use",
        HTTPStatus.SEE_OTHER,
        headers={"Cache-Control": "no-store"},
    )
    if not is_from_elsewhere(request):
        remember(response, build=id_)
    return response


@router.get("/issues/{issue}/repro.py")
def repro(context: Context, issue: str) -> Response:
    return context.answer(
        lambda session: find_issue(session, issue),
        lambda row: context.text(row.script, "text/x-python; charset=utf-8", f"{row.id}.py"),
    )


def _choose(issue: Issue, known: Known, cells: Sequence[Cell], wanted: str, class_: str) -> Chosen:
    """`wanted` and `class_` are what the reader asks for; empty: the newest failing build, the class it failed on."""
    measured = tuple(dict.fromkeys(sorted(cell.hardware for cell in cells)))
    hardware = one_class(class_, measured) if class_ else telling_class(cells, measured)
    builds = known.builds
    build = (
        builds_or_wheels(builds.values(), [wanted], "build")[0] if wanted else telling_build(builds, cells, hardware)
    )
    if build is None:
        raise InvalidParameter("the catalogue has no builds yet; run `knowngood up`")
    return Chosen(build, hardware, known.cell(issue, build, hardware), is_remembered=False)


def issue_page(
    context: RequestContext, issue: Issue, telling: IssueEvidence, wanted: str = "", sort: str = ""
) -> IssuePage:
    """`wanted` is the build that the address asks for, `sort` the column of the evidence."""
    builds, cells = telling.known.builds, telling.cells
    build, hardware, cell = telling.chosen.build, telling.chosen.hardware, telling.chosen.cell
    measured = tuple(dict.fromkeys(sorted(cell.hardware for cell in cells)))
    releases = choose_columns(builds.values(), {measured_cell.build for measured_cell in cells}, Columns.RELEASES)
    workarounds = workarounds_of(issue, build, cell, context, telling.costs)
    strips = _strips(context, issue, releases, measured or (hardware,), cells, telling.known)
    leading = tuple(strip for strip in strips if not isa_of(strip.hardware)) or strips

    def address_of(order: str) -> str:
        chosen = hardware if wanted else ""
        return f"{asking(issue_address(issue.id), build=wanted, hardware=chosen, sort=order)}#evidence"

    return IssuePage(
        issue=issue,
        strips=strips,
        leading=leading,
        isas=isa_difference(issue, telling.known),
        lifespans=lifespan_chart(
            context, lifespans_by_class(issue, telling.known, measured or (hardware,)), build=build.id, by_class=True
        ),
        chosen=telling.chosen,
        builds=tuple(
            column.id
            for column in choose_columns(
                builds.values(), {*(measured_cell.build for measured_cell in cells), build.id}, Columns.ALL
            )
        )[::-1],
        classes=tuple(
            Choice(class_, issue_address(issue.id, build=wanted, hardware=class_), class_ == hardware)
            for class_ in dict.fromkeys([*measured, hardware])
        ),
        word=whole_word(cell, issue, telling.known, context.language),
        workarounds=workarounds,
        elsewhere=elsewhere_of(issue, build, cell),
        known=how_known(cell.basis, context.language) if cell.basis else "",
        claims=held_claims(issue, [(builds[measured_cell.build], measured_cell) for measured_cell in cells]),
        links={kind: tuple(link for link in issue.links if link.kind is kind) for kind in LinkKind},
        evidence=sort_evidence(cells, sort),
        stale=stale_cells(cells, builds, context.now),
        evidence_heads=make_heads(context, sort, address_of, has_classes=len(measured) > 1),
        attempts=telling.attempts,
        commands=commands(Subject(issue, build, hardware), context.base),
        sections=sections_of(context, issue, telling.known, workarounds) if context.is_file else None,
    )


def _strips(
    context: RequestContext,
    issue: Issue,
    chosen: Sequence[Build],
    classes: Sequence[str],
    cells: Sequence[Cell],
    known: Known,
) -> tuple[Strip, ...]:
    """One below the other, and so of the same columns: a contradiction on one hardware class unfolds them for all."""
    columns = fold([issue], chosen, classes, known)
    heads = heads_of(columns, {cell.build for cell in cells})
    rows = rows_of([issue], columns, classes, known)
    strips = []
    for hardware in classes:
        row = rows[issue.id, hardware]
        squares = squares_of(row, heads, stale_cells(row, known.builds, context.now))
        history = known.history(issue.id, hardware)
        sentence = clauses([history.sentence, *doubts_about(issue, history)])
        if len(whole_classes(classes)) > 1:
            sentence = Message("on_class", hardware=hardware, said=sentence)
        strips.append(Strip(hardware, history, sentence, squares))
    return tuple(strips)
