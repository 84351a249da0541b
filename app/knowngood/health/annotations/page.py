"""`/cells/{issue}/{build}/notes`: what people say of a cell, and the form to say it. Held by nobody's cache."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from knowngood.domain.access import Scope
from knowngood.domain.errors import BadRequest
from knowngood.domain.verdicts.notes import NoteKind, standing_void
from knowngood.matrix.evidence.page import NOTE_WORDS
from knowngood.matrix.evidence.service import load_cell_evidence
from knowngood.matrix.overview.selection import Words
from knowngood.store.engine import reading, unit_of_work
from knowngood.store.evidence.cells import load_notes
from knowngood.store.evidence.notes import add_note
from knowngood.web.auth.principal import require, require_own_form
from knowngood.web.forms import Form
from knowngood.web.request_context import Context, RequestContext, see_other, uncached
from knowngood.web.urls import notes_address

router = APIRouter(include_in_schema=False)

MEANINGS = {
    NoteKind.ANNOTATE: "Add a note: it is shown beside the evidence and changes nothing.",
    NoteKind.DISPUTE: "Dispute it: shown beside the evidence, the verdict stands.",
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
    to = notes_address(key.issue, key.build, key.hardware)
    return see_other(to)


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
