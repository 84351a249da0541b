"""`/cells/{issue}/{build}/notes`: what people say of a cell, and the form to say it. Held by nobody's cache."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from knowngood.domain.access import Scope
from knowngood.domain.errors import BadRequest
from knowngood.domain.verdicts.notes import Note, NoteKind, standing_void
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import Cell
from knowngood.domain.vocabulary import StatusLabel
from knowngood.matrix.evidence.cell_page import NOTE_WORDS
from knowngood.matrix.evidence.service import load_cell_evidence
from knowngood.matrix.overview.selection import Words
from knowngood.store.engine import reading, unit_of_work
from knowngood.store.evidence.cells import load_notes
from knowngood.store.evidence.notes import add_note
from knowngood.web.auth.principal import require, require_own_form
from knowngood.web.forms import Form
from knowngood.web.html.status_labels import bare_word
from knowngood.web.request_context import Context, RequestContext, see_other, uncached
from knowngood.web.urls import API, cell_address, notes_address

router = APIRouter(include_in_schema=False)

MEANINGS = {
    NoteKind.ANNOTATE: "Add a note: it is shown beside the evidence and changes nothing.",
    NoteKind.DISPUTE: "Dispute it: shown beside the evidence, the verdict stands.",
    NoteKind.VOID: "Void it: it reads cannot say everywhere, the gate included, until it is restored.",
    NoteKind.RESTORE: "Restore it: its evidence counts again.",
}


@dataclass(frozen=True)
class KindChoice:
    kind: NoteKind
    meaning: str
    is_chosen: bool


@dataclass(frozen=True)
class NotesPage:
    """`choices` is empty where the reader may only read; `reason` is what was typed in vain, `problem` why."""

    cell: Cell
    title: str
    sign: StatusLabel
    word: str
    address: str
    cell_address: str
    notes: tuple[tuple[Note, str], ...]
    choices: tuple[KindChoice, ...]
    reason: str
    problem: str
    form_token: str
    json_address: str


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
    to = notes_address(key.issue, key.build, key.hardware)
    return see_other(to)


def _shown(
    context: RequestContext, issue: str, build: str, hardware: str, kind: str = "", reason: str = "", problem: str = ""
) -> Response:
    with reading(context.state.engine) as s:
        evidence = load_cell_evidence(s, context.known(s), issue, build, hardware)
        cell = evidence.cell
        said = load_notes(s, [cell.key])[cell.key]
    may_say = (
        bool(context.principal.session)
        and context.principal.may(Scope.TRIAGE)
        and cell.measured_at is not None
        and cell.basis is None
    )
    unfit = NoteKind.VOID if standing_void(said) else NoteKind.RESTORE
    offered = [one for one in NoteKind if one is not unfit] if may_say else []
    address = notes_address(cell.issue, cell.build, cell.hardware)
    page = NotesPage(
        cell=cell,
        title=context.title_of(evidence.issue),
        sign=status_of(cell),
        word=bare_word(cell, context.language),
        address=address,
        cell_address=cell_address(*cell.key),
        notes=tuple((note, context.say(NOTE_WORDS[note.kind])) for note in said),
        choices=tuple(KindChoice(one, context.say(MEANINGS[one]), one == (kind or offered[0])) for one in offered),
        reason=reason,
        problem=problem,
        form_token=context.principal.form_token,
        json_address=f"{API}{address}",
    )
    return uncached(context.page("notes.html", page, HTTPStatus.UNPROCESSABLE_ENTITY if problem else HTTPStatus.OK))
