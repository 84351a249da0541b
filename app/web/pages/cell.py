"""`/cells/{issue}/{build}`: why this verdict, from which attempts, and how to see it again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.domain.build import Build
from app.domain.issue import BASELINE, CONTROL, Issue
from app.domain.machine import Machine
from app.domain.triage import Note, NoteKind
from app.domain.verdict import Cell, VariantFinding, is_stale
from app.store.cells import CellKey, load_notes
from app.store.reads import AttemptRow
from app.web.addresses import attempt_address, build_address, cell_address, issue_address
from app.web.commands import Commands, Subject, commands
from app.web.evidence import CellEvidence, cell_sentence, load_cell_evidence
from app.web.remedies import Elsewhere, Remedy, elsewhere_of, remedies_of
from app.web.selection import Words
from app.web.signs import OUTCOME_WORDS, WORDS, Sign, sign_of, sign_of_outcome, sign_of_verdict
from app.web.squares import Choice
from app.web.visit import API, Visit, Visiting

router = APIRouter(include_in_schema=False)

NOTE_WORDS = {
    NoteKind.ANNOTATE: "noted",
    NoteKind.DISPUTE: "disputed",
    NoteKind.VOID: "voided",
    NoteKind.RESTORE: "restored",
}


@dataclass(frozen=True)
class VariantLine:
    finding: VariantFinding
    title: str
    sign: Sign
    word: str


@dataclass(frozen=True)
class AttemptLine:
    """One row of evidence; `word` is its outcome in a reader's words."""

    row: AttemptRow
    address: str
    sign: Sign
    word: str


@dataclass(frozen=True)
class NoteLine:
    note: Note
    word: str


@dataclass(frozen=True)
class CellPage:
    issue: Issue
    issue_title: str
    issue_address: str
    build: Build
    build_address: str
    cell: Cell
    sign: Sign
    word: str
    sentence: str
    is_stale: bool
    machine: Machine | None
    classes: tuple[Choice, ...]
    variants: tuple[VariantLine, ...]
    remedies: tuple[Remedy, ...]
    elsewhere: tuple[Elsewhere, ...]
    attempts: tuple[AttemptLine, ...]
    notes: tuple[NoteLine, ...]
    evidence_address: str
    commands: Commands
    json_address: str


@router.get("/cells/{issue}/{build}")
def cell(visit: Visiting, issue: str, build: str, hardware: Annotated[Words, Query()] = "") -> Response:
    with visit.reading() as session:
        evidence = load_cell_evidence(session, issue, build, hardware)
        key = CellKey(evidence.issue.id, evidence.build.id, evidence.cell.hardware)
        notes = load_notes(session, [key])[key]
    return visit.page("cell.html", cell_page(visit, evidence, notes))


def cell_page(visit: Visit, evidence: CellEvidence, notes: Sequence[Note]) -> CellPage:
    issue, build, cell = evidence.issue, evidence.build, evidence.cell
    own = cell_address(issue.id, build.id, cell.hardware)
    titles = {variant.id: variant.title for variant in issue.variants}
    return CellPage(
        issue=issue,
        issue_title=visit.in_language(issue.title, issue.title_zh),
        issue_address=issue_address(issue.id, build=build.id, hardware=cell.hardware),
        build=build,
        build_address=build_address(build.id, cell.hardware),
        cell=cell,
        sign=sign_of(cell),
        word=visit.say(WORDS[sign_of(cell)]),
        sentence=cell_sentence(cell),
        is_stale=is_stale(cell, build, visit.now),
        machine=evidence.machine,
        classes=tuple(
            Choice(class_, cell_address(issue.id, build.id, class_), class_ == cell.hardware)
            for class_ in dict.fromkeys([*evidence.classes, cell.hardware])
        ),
        variants=tuple(
            VariantLine(one, titles.get(one.variant, ""), sign := sign_of_verdict(one.verdict), visit.say(WORDS[sign]))
            for one in cell.variants
        ),
        remedies=remedies_of(issue, build, cell, visit),
        elsewhere=elsewhere_of(issue, build, cell, visit),
        attempts=tuple(_line(visit, row) for row in _telling_first(issue, evidence.attempts)),
        notes=tuple(NoteLine(note, visit.say(NOTE_WORDS[note.kind])) for note in notes),
        evidence_address=attempt_address(cell.evidence) if cell.evidence else "",
        commands=commands(Subject(issue, build, cell.hardware), visit.base),
        json_address=f"{API}{own}",
    )


def _telling_first(issue: Issue, attempts: Iterable[AttemptRow]) -> list[AttemptRow]:
    """Counted ones first: baseline, control, then each workaround; within an arm the newest first, as they come."""
    arms = {id_: place for place, id_ in enumerate((BASELINE, CONTROL, *(one.id for one in issue.workarounds)))}
    return sorted(
        attempts, key=lambda row: (not row.counted, arms.get(row.attempt.arm, len(arms)), row.attempt.variant)
    )


def _line(visit: Visit, row: AttemptRow) -> AttemptLine:
    outcome = row.judgement.outcome
    return AttemptLine(
        row, attempt_address(row.attempt.id), sign_of_outcome(outcome), visit.say(OUTCOME_WORDS[outcome])
    )
