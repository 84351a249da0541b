"""`/api/v1/coverage`, `hygiene`, `quality` and `workers`: what is missing, contradicted, repeated, and who measures.

`/api/v1/cells/{issue}/{build}/notes`: what people say of a cell, beside its evidence. `/api/v1/voids`: all results of
one worker in a span of time, out of the count and back in, for administrators.
"""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from knowngood.domain.access import Actor, Scope
from knowngood.domain.errors import BadRequest
from knowngood.domain.measuring.worker_stats import Window
from knowngood.domain.verdicts.verdict import CellKey, Verdict
from knowngood.domain.verdicts.voids import LONGEST_REASON, Clock, Note, NoteKind, UnknownVoid, Void, VoidSpan
from knowngood.health.coverage import Coverage, Hygiene, coverage_of, hygiene_of, load_waiting
from knowngood.health.fleet import Workers, load_workers
from knowngood.health.quality import Quality, load_quality
from knowngood.matrix.evidence.service import load_cell_evidence
from knowngood.matrix.overview.selection import Words
from knowngood.store.engine import Session, reading, unit_of_work
from knowngood.store.evidence.cells import load_notes
from knowngood.store.evidence.notes import add_note
from knowngood.store.evidence.voids import (
    VoidReport,
    known_worker,
    load_voids,
    unvoid_results,
    void_results,
)
from knowngood.web.auth.principal import RequireScope
from knowngood.web.errors import InvalidParameter, NotFound
from knowngood.web.json_body import Body, OfCellBody, fields_of, read_from
from knowngood.web.parameter_validation import Written, first_moment, last_moment
from knowngood.web.request_context import Context, RequestContext, uncached

router = APIRouter()


@router.get("/coverage", response_model=Coverage, tags=["coverage"])
def coverage(context: Context) -> Response:
    """Patterns by hardware class, and what is open: workarounds without a verdict, doubtful cells, unproven rows,
    contradicted claims, queued jobs that no worker can take.
    """
    return context.answer(
        lambda session: coverage_of(context.known(session), load_waiting(session, context.now)),
        context.json,
        f"{context.now:%H:%M}",  # a worker's absence is noticed by the clock alone
    )


@router.get("/hygiene", response_model=Hygiene, tags=["hygiene"])
def hygiene(context: Context) -> Response:
    """Remarks for a keeper of the catalogue, by issue."""
    return context.answer(context.known, lambda known: context.json(hygiene_of(known)))


@router.get("/quality", response_model=Quality, tags=["quality"])
def quality(context: Context) -> Response:
    """The rate of false changes and its interval, what varies, what was trouble of ours, how far Pythons and devices
    agree, and where time went.
    """
    return context.answer(lambda session: load_quality(session, context.known(session).claims), context.json)


@router.get("/workers", response_model=Workers, tags=["workers"])
def workers(
    context: Context, window: Annotated[Window, Query(description="How far back to look")] = Window.WEEK
) -> Response:
    """Every machine that ever measured here, whoever was seen last first."""
    return context.answer(
        lambda session: load_workers(session, context.known(session), window, context.now), context.json
    )


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


@fields_of(Note, without={"issue", "build", "actor"})
class NoteBody(Body):
    by: str = read_from("actor")


class NotesBody(Body):
    """The oldest first."""

    issue: str
    build: str
    notes: list[NoteBody]


@router.get("/cells/{issue}/{build}/notes", tags=["notes"], response_model=NotesBody)
def notes(context: Context, issue: str, build: str, hardware: Annotated[Words, Query()] = "") -> Response:
    """The notes on one cell, the oldest first."""

    def load(session: Session) -> NotesBody:
        key = _find_key(context, session, issue, build, hardware)
        notes = [NoteBody.of(note) for note in load_notes(session, [key])[key]]
        return NotesBody(issue=key.issue, build=key.build, notes=notes)

    return context.answer(load, context.json)


@router.post(
    "/cells/{issue}/{build}/notes",
    tags=["notes"],
    response_model=NoteBody,
    status_code=HTTPStatus.CREATED,
    operation_id="post_note",
)
def say(context: Context, judge: Judge, issue: str, build: str, change: NoteChange) -> Response:
    """Say something of a cell: annotate it, dispute it, make it void, or restore it."""
    with unit_of_work(context.state.engine) as session:
        key = _find_key(context, session, issue, build, change.hardware)
        note = add_note(session, key, change.kind, change.reason, by=judge, now=context.now)
    response = context.json(NoteBody.of(note))
    response.status_code = HTTPStatus.CREATED
    return response


def _find_key(context: RequestContext, session: Session, issue: str, build: str, hardware: str) -> CellKey:
    return load_cell_evidence(session, context.known(session), issue, build, hardware).cell.key


Administrator = Annotated[Actor, Depends(RequireScope(Scope.ADMIN))]
Reason = Annotated[str, Field(min_length=1, max_length=LONGEST_REASON)]


class VoidChange(BaseModel):
    """Whose results, of when, and why. At least one of `machine` (a digest of `/workers`) and `token` (its name or id).

    `from` without a word is ever, `to` is now; both are part of the span. By `clock` the span is of when they were
    `measured`, as the worker says, or of when they were `received` here. With `dry_run` nothing is done.
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"token": "gpu-host-1", "from": "2026-11-20", "reason": "its memory is broken"}]
        },
    )

    machine: Words = ""
    token: Words = ""
    since: Annotated[Written, Field(alias="from")] = None
    until: Annotated[Written, Field(alias="to")] = None
    clock: Clock = Clock.MEASURED
    reason: Reason
    dry_run: bool = False


class VoidEnd(BaseModel):
    """Why they count again. With `dry_run` nothing is done."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"reason": "it was another host"}]})

    reason: Reason
    dry_run: bool = False


@fields_of(Void, without={"span", "actor"})
@fields_of(VoidSpan, "span")
class VoidBody(Body):
    """`token` is the id of a token. `ended_at` is null while the void stands."""

    by: str = read_from("actor")


class VoidsBody(Body):
    """The newest first, those that were ended too."""

    voids: list[VoidBody]


class VoidedCellBody(OfCellBody):
    """A cell whose verdict, or that of a workaround of it, is another one."""

    before: Annotated[Verdict | None, BeforeValidator(lambda cell: cell and cell.verdict)]
    after: Annotated[Verdict | None, BeforeValidator(lambda cell: cell and cell.verdict)]


class VoidReportBody(Body):
    """The effect, or with `dry_run` what it would be: so many attempts were marked (or are no more), `counted` of them
    count otherwise than before, in so many cells. `changed` are those that read differently.
    """

    void: VoidBody
    dry_run: bool
    attempts: int
    counted: int
    cells: int
    changed: list[VoidedCellBody]


@router.get("/voids", tags=["voids"], response_model=VoidsBody, operation_id="get_voids")
def voids(context: Context, _administrator: Administrator) -> Response:
    """Who voided which results, when and why. Needs the scope admin."""
    with reading(context.state.engine) as session:
        rows = load_voids(session)
    return uncached(context.json(VoidsBody(voids=[VoidBody.of(entry) for entry in rows])))


@router.post("/voids", tags=["voids"], response_model=VoidReportBody, operation_id="post_void")
def void(context: Context, administrator: Administrator, change: VoidChange) -> Response:
    """Keep all results of a worker in a span from counting; the cells they are in are derived again at once."""
    since = first_moment(change.since, "body.from", context.now) if change.since else None
    until = last_moment(change.until, "body.to", context.now) if change.until else context.now
    with unit_of_work(context.state.engine, dry_run=change.dry_run) as session:
        machine, token = _known(session, change)
        span = VoidSpan(machine, token, since, until, change.clock)
        report = void_results(session, span, change.reason, by=administrator, now=context.now)
    return uncached(context.json(_report(report, is_rehearsal=change.dry_run)))


@router.post("/voids/{void}/end", tags=["voids"], response_model=VoidReportBody, operation_id="post_void_end")
def end(
    context: Context, administrator: Administrator, void: Annotated[int, Path(ge=1, le=2**62)], change: VoidEnd
) -> Response:
    """Let voided results count again: the cells are then what they would be had it never been said."""
    with unit_of_work(context.state.engine, dry_run=change.dry_run) as session:
        try:
            report = unvoid_results(session, void, change.reason, by=administrator, now=context.now)
        except UnknownVoid as error:
            raise NotFound(str(error)) from None
    return uncached(context.json(_report(report, is_rehearsal=change.dry_run)))


def _known(session: Session, change: VoidChange) -> tuple[str, str]:
    try:
        return known_worker(session, change.machine, change.token)
    except BadRequest as error:
        raise InvalidParameter(str(error), "body.token" if change.token else "body.machine") from None


def _report(report: VoidReport, *, is_rehearsal: bool) -> VoidReportBody:
    return VoidReportBody(
        void=VoidBody.of(report.void),
        dry_run=is_rehearsal,
        attempts=report.attempts,
        counted=report.counted,
        cells=report.cells,
        changed=[VoidedCellBody.of(change) for change in report.changes if change.is_news],
    )
