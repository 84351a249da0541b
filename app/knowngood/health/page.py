"""How good the evidence is, as pages.

`/coverage` has every row with its pattern over the releases, and what of the catalogue is still open; `/hygiene` what a
keeper of the catalogue should look at, by kind; `/quality` how often this project's own answers change where nothing
did; `/workers` who measures, how busy it is, what a cell costs there, what it does now, and what nobody can measure.

`/cells/{issue}/{build}/notes`: what people say of a cell, and the form to say it. Held by nobody's cache.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from knowngood.domain.access import Scope
from knowngood.domain.errors import BadRequest
from knowngood.domain.grouping import grouped
from knowngood.domain.issue import Issue
from knowngood.domain.measuring.placement import Waiting
from knowngood.domain.measuring.worker_stats import Window
from knowngood.domain.verdicts.inference import AGREEMENT
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import fold, rows_of, stale_cells
from knowngood.domain.verdicts.voids import NoteKind, standing_void
from knowngood.health.coverage import ClassCoverage, coverage_of, hygiene_of, load_waiting
from knowngood.health.fleet import Workers, load_workers
from knowngood.health.quality import load_quality
from knowngood.health.rules import HEADINGS, Pattern
from knowngood.matrix.evidence.page import NOTE_WORDS
from knowngood.matrix.evidence.service import load_cell_evidence
from knowngood.matrix.overview.selection import Words
from knowngood.store.engine import Session, reading, unit_of_work
from knowngood.store.evidence.cells import load_notes
from knowngood.store.evidence.notes import add_note
from knowngood.store.queries import load_last_event
from knowngood.web.auth.principal import require, require_own_form
from knowngood.web.forms import Form
from knowngood.web.html.grid import CellGlyph, Choice, ColumnHeader, heads_of, squares_of
from knowngood.web.request_context import Context, RequestContext, see_other, uncached
from knowngood.web.urls import API, notes_address

router = APIRouter(include_in_schema=False)

WINDOW_WORDS = {Window.DAY: "24 hours", Window.WEEK: "7 days", Window.MONTH: "30 days"}

Components = Mapping[str, Sequence[tuple[Pattern, Sequence[CellGlyph]]]]


@router.get("/coverage")
def coverage(context: Context) -> Response:
    return context.answer(
        lambda session: (context.known(session), load_waiting(session, context.now)),
        lambda loaded: _coverage_page(context, *loaded),
    )


def _coverage_page(context: RequestContext, known: Known, waiting: tuple[Waiting, ...]) -> Response:
    report = coverage_of(known, waiting)
    tables = {class_.hardware: _table(context, class_, known) for class_ in report.hardware}
    return context.page("coverage.html", report, issues=known.issues, tables=tables)


def _table(context: RequestContext, of_class: ClassCoverage, known: Known) -> tuple[Sequence[ColumnHeader], Components]:
    """The columns of one class, and its rows with their squares by component."""
    issues, classes = [known.issues[row.issue] for row in of_class.rows], [of_class.hardware]
    columns = fold([known.builds[id_] for id_ in of_class.builds], classes, known)
    standing = rows_of(issues, columns, classes, known)
    cells = [cell for row in standing.values() for cell in row]
    heads = heads_of(columns, {cell.build for cell in cells if cell.measured_at is not None})
    stale = stale_cells(cells, known.builds, context.now)
    rows = [(row, squares_of(standing[row.issue, of_class.hardware], heads, stale)) for row in of_class.rows]
    return heads, dict(sorted(grouped(rows, lambda row: known.issues[row[0].issue].component).items()))


@router.get("/hygiene")
def hygiene(context: Context) -> Response:
    return context.answer(
        context.known,
        lambda known: context.page("hygiene.html", hygiene_of(known), issues=known.issues, headings=HEADINGS),
    )


@router.get("/quality")
def quality(context: Context) -> Response:
    return context.answer(
        lambda session: load_quality(session, context.known(session).claims),
        lambda report: context.page("quality.html", report, least=AGREEMENT),
    )


@router.get("/workers")
def workers(context: Context, window: Annotated[Window, Query()] = Window.WEEK) -> Response:
    def load(session: Session) -> tuple[Workers, Mapping[str, Issue], int]:
        known = context.known(session)
        return load_workers(session, known, window, context.now), known.issues, load_last_event(session)

    return context.answer(load, lambda loaded: _workers_page(context, *loaded))


def _workers_page(context: RequestContext, report: Workers, issues: Mapping[str, Issue], last: int) -> Response:
    """`last` is where the live stream goes on from, while anything moves."""
    is_moving = (
        any(worker.doing for worker in report.workers)
        or bool(report.held_by_none)
        or any(class_.queued_jobs for class_ in report.classes)
    )
    return context.page(
        "workers.html",
        report,
        issues=issues,
        since=context.now - report.window.span,
        percent=percent,
        window=context.say(WINDOW_WORDS[report.window]),
        windows=[
            Choice(context.say(words), f"/workers?window={window}", window is report.window)
            for window, words in WINDOW_WORDS.items()
        ],
        live_address=f"{API}/events?after={last}" if is_moving else "",
    )


def percent(share: float) -> str:
    """`0 %` only where it was nothing at all, and never 100 where there was a gap."""
    if 0 < share < 0.01:  # noqa: PLR2004 - a hundredth
        return "< 1 %"
    return f"{int(share * 100)} %"


MEANINGS = {
    NoteKind.ANNOTATE: "Add a note: it is shown with the evidence and changes nothing.",
    NoteKind.DISPUTE: "Dispute it: this is shown with the evidence, and the verdict stays.",
    NoteKind.VOID: "Void it: it reads cannot say everywhere, the gate included, until it is restored.",
    NoteKind.RESTORE: "Restore it: its evidence counts again.",
}


@router.get("/cells/{issue}/{build}/notes")
def notes(context: Context, issue: str, build: str, hardware: Annotated[Words, Query()] = "") -> Response:
    return _shown(context, issue, build, hardware)


@router.post("/cells/{issue}/{build}/notes")
def say(
    context: Context, request: Request, issue: str, build: str, form: Form, hardware: Annotated[Words, Query()] = ""
) -> Response:
    require_own_form(request, form.get("form_token", ""))
    by = require(request, Scope.TRIAGE).actor
    kind, reason = form.get("kind", ""), form.get("reason", "")
    if kind not in set(NoteKind):
        return _shown(context, issue, build, hardware, reason=reason, problem="choose what to say of the cell")
    try:
        with unit_of_work(context.state.engine) as s:
            key = load_cell_evidence(s, context.known(s), issue, build, hardware).cell.key
            add_note(s, key, NoteKind(kind), reason, by=by, now=context.now)
    except BadRequest as problem:
        return _shown(context, issue, build, hardware, kind, reason, str(problem))
    return see_other(notes_address(key.issue, key.build, key.hardware))


def _shown(
    context: RequestContext, issue: str, build: str, hardware: str, kind: str = "", reason: str = "", problem: str = ""
) -> Response:
    """`kind` and `reason` are what was sent in vain, `problem` is why. Who may only read is offered no kind."""
    with reading(context.state.engine) as s:
        evidence = load_cell_evidence(s, context.known(s), issue, build, hardware)
        cell = evidence.cell
        notes = load_notes(s, [cell.key])[cell.key]
    may_say = (
        bool(context.principal.session)
        and context.principal.may(Scope.TRIAGE)
        and cell.measured_at is not None
        and cell.basis is None
    )
    unfit = NoteKind.VOID if standing_void(notes) else NoteKind.RESTORE
    page = context.page(
        "notes.html",
        cell,
        HTTPStatus.UNPROCESSABLE_ENTITY if problem else HTTPStatus.OK,
        issue=evidence.issue,
        notes=notes,
        words=NOTE_WORDS,
        meanings={note_kind: meaning for note_kind, meaning in MEANINGS.items() if may_say and note_kind is not unfit},
        kind=kind,
        reason=reason,
        problem=problem,
    )
    return uncached(page)
