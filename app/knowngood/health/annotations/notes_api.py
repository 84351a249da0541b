"""`/api/v1/cells/{issue}/{build}/notes`: what people say of a cell, beside its evidence."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from knowngood.domain.access import Actor, Scope
from knowngood.domain.verdicts.notes import NoteKind
from knowngood.domain.verdicts.verdict import CellKey
from knowngood.matrix.evidence.service import load_cell_evidence
from knowngood.matrix.overview.selection import Words
from knowngood.store.engine import Session, unit_of_work
from knowngood.store.evidence.cells import load_notes
from knowngood.store.evidence.notes import add_note
from knowngood.web.auth.principal import RequireScope
from knowngood.web.json_body import Body, read_from
from knowngood.web.request_context import Context, RequestContext

router = APIRouter(tags=["notes"])

Judge = Annotated[Actor, Depends(RequireScope(Scope.TRIAGE))]


class NoteChange(BaseModel):
    """A note on a cell. `void` makes it read inconclusive everywhere until `restore`; its evidence stays.

    `hardware` may be left out where the cell was measured on one class alone.
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"kind": "dispute", "reason": "our host overheats", "hardware": "cpu-x86_64"}]},
    )

    kind: NoteKind
    reason: Annotated[str, Field(min_length=1, max_length=1000)]
    hardware: Words = ""


class NoteBody(Body):
    hardware: str
    kind: NoteKind
    reason: str
    by: str = read_from("actor")
    at: datetime


class NotesBody(Body):
    """The oldest first."""

    issue: str
    build: str
    notes: list[NoteBody]


@router.get("/cells/{issue}/{build}/notes", response_model=NotesBody)
def notes(context: Context, issue: str, build: str, hardware: Annotated[Words, Query()] = "") -> Response:
    """The notes on one cell, the oldest first."""

    def load(session: Session) -> NotesBody:
        key = _found(context, session, issue, build, hardware)
        notes = [NoteBody.of(note) for note in load_notes(session, [key])[key]]
        return NotesBody(issue=key.issue, build=key.build, notes=notes)

    return context.answer(load, context.json)


@router.post(
    "/cells/{issue}/{build}/notes", response_model=NoteBody, status_code=HTTPStatus.CREATED, operation_id="post_note"
)
def say(context: Context, judge: Judge, issue: str, build: str, change: NoteChange) -> Response:
    """Say something of a cell: annotate it, dispute it, make it void, or restore it."""
    with unit_of_work(context.state.engine) as session:
        key = _found(context, session, issue, build, change.hardware)
        note = add_note(session, key, change.kind, change.reason, by=judge, now=context.now)
    response = context.json(NoteBody.of(note))
    response.status_code = HTTPStatus.CREATED
    return response


def _found(context: RequestContext, session: Session, issue: str, build: str, hardware: str) -> CellKey:
    cell = load_cell_evidence(session, context.known(session), issue, build, hardware).cell
    return cell.key
