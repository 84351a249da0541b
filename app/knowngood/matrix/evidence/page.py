"""`/cells/{issue}/{build}`: why this verdict, from which attempts, and how to see it again.

`/attempts/{id}`: one execution as measured: its log with the telling line lit, its environment, how to repeat it.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from markupsafe import Markup

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import BASELINE, CONTROL, Issue
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.verdicts.changes import CellNews
from knowngood.domain.verdicts.matrix import concerns_cpu_path
from knowngood.domain.verdicts.verdict import FAILING, Cell, CellKey, Verdict
from knowngood.domain.verdicts.voids import Note, NoteKind
from knowngood.domain.vocabulary import OUTCOMES
from knowngood.matrix.charts.api import costs_csv
from knowngood.matrix.charts.costs import Moment, cost_rows, timeline
from knowngood.matrix.evidence.reproduce import Subject, commands, hashed_requirements
from knowngood.matrix.evidence.service import (
    ATTEMPTS_SHOWN,
    CHANGES_SHOWN,
    CellEvidence,
    how_known,
    load_cell_evidence,
    measured_sentence,
    timed_of,
)
from knowngood.matrix.issues.workarounds import costs_on, elsewhere_of, workarounds_of
from knowngood.matrix.lookups import find_attempt, find_build, find_issue
from knowngood.matrix.overview.selection import Words
from knowngood.store.engine import Session
from knowngood.store.evidence.cells import load_notes
from knowngood.store.evidence.changes import load_cell_news
from knowngood.store.queries import AttemptDetail, AttemptRow
from knowngood.web.errors import NotFound
from knowngood.web.html.grid import Choice
from knowngood.web.html.markdown import excerpt, marked
from knowngood.web.html.status_labels import whole_word
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import (
    attempt_address,
    cell_address,
    pins_address,
)

router = APIRouter(include_in_schema=False)


NOTE_WORDS = {
    NoteKind.ANNOTATE: "noted",
    NoteKind.DISPUTE: "disputed",
    NoteKind.VOID: "voided",
    NoteKind.RESTORE: "restored",
}


_FAILS = FAILING | {Verdict.DIFFERENT_FAILURE}


@router.get("/cells/{issue}/{build}")
def cell(context: Context, issue: str, build: str, hardware: Annotated[Words, Query()] = "") -> Response:
    def load(session: Session) -> tuple[CellEvidence, Sequence[Note], Sequence[CellNews]]:
        evidence = load_cell_evidence(session, context.known(session), issue, build, hardware)
        key = CellKey(*evidence.cell.key)
        return evidence, load_notes(session, [key])[key], load_cell_news(session, *evidence.cell.key, CHANGES_SHOWN)

    return context.answer(load, lambda loaded: context.page("cell.html", cell_page(context, *loaded)))


@router.get("/cells/{issue}/{build}/costs.csv")
def costs_as_csv(context: Context, issue: str, build: str, hardware: Annotated[Words, Query()] = "") -> Response:
    def load(session: Session) -> bytes:
        evidence = load_cell_evidence(session, context.known(session), issue, build, hardware)
        return costs_csv(costs_on(evidence.issue, evidence.cell, timed_of(evidence.supporting)))

    return context.answer(load, lambda text: context.text(text, "text/csv; charset=utf-8", "costs.csv"))


def cell_page(
    context: RequestContext, evidence: CellEvidence, notes: Sequence[Note], news: Sequence[CellNews]
) -> dict[str, Any]:
    """Everything templates/cell.html shows. `known` says how an inferred cell is known (empty: it was measured, or
    nothing is known). `elsewhere_address` leads to the CPU's cell of an issue that concerns the CPU path alone.
    `attempts` stand in the order of the issue's arms.
    """
    issue, build, cell, telling = evidence.issue, evidence.build, evidence.cell, evidence.telling
    subject = _subject(evidence)
    costs = costs_on(issue, cell, timed_of(evidence.supporting))
    workarounds = workarounds_of(issue, cell, evidence.known, context, costs)
    return {
        "evidence": evidence,
        "word": whole_word(cell, issue, evidence.known, context.language),
        "silence": _silence(context, issue, cell),
        "known": how_known(cell.basis, context.language) if cell.basis else "",
        "elsewhere_address": cell_address(issue.id, build.id, CPU_CLASS) if concerns_cpu_path([cell]) else "",
        "sentence": measured_sentence(evidence),
        "log": _log(telling, cell.line),
        "pins_address": pins_address(locked_by) if (locked_by := subject.locked_by) else "",
        "classes": tuple(
            Choice(class_, cell_address(issue.id, build.id, class_), class_ == cell.hardware)
            for class_ in dict.fromkeys([*evidence.classes, cell.hardware])
        ),
        "workarounds": workarounds,
        "elsewhere": elsewhere_of(issue, build, cell),
        "costs": cost_rows({workaround.id: workaround.title for workaround in workarounds}, costs),
        "timeline": timeline(_moments(context, issue, evidence.attempts)),
        "attempts": tuple(_telling_first(issue, evidence.attempts)),
        "is_cut": len(evidence.attempts) >= ATTEMPTS_SHOWN,
        "notes": tuple((note, context.say(NOTE_WORDS[note.kind])) for note in notes),
        "changes": news[::-1],
        "commands": commands(subject, context.base),
    }


def _moments(
    context: RequestContext, issue: Issue, attempts: Iterable[AttemptRow]
) -> Iterator[tuple[str, datetime, Moment]]:
    for row in _telling_first(issue, attempts):
        this_attempt, term = row.attempt, OUTCOMES[row.judgement.outcome]
        name = (
            f"{this_attempt.arm} {this_attempt.variant} #{this_attempt.ordinal}, "
            f"{this_attempt.finished_at:%Y-%m-%d %H:%M}: {context.say(term.word)}"
        )
        yield (
            this_attempt.arm,
            this_attempt.finished_at,
            Moment(0, term.label, name, attempt_address(this_attempt.id), row.counted),
        )


def _silence(context: RequestContext, issue: Issue, cell: Cell) -> str:
    """Whether a failure shows here without being looked for; empty for a loud failure of a loud issue."""
    if cell.silent is None or (cell.verdict not in _FAILS and not cell.differences):
        return ""
    if cell.silent:
        return context.say("wrong numbers without an error")
    return context.say("ends with an error here") if issue.silent else ""


def _telling_first(issue: Issue, attempts: Iterable[AttemptRow]) -> list[AttemptRow]:
    """Counted ones first: baseline, control, then each workaround; within an arm the newest first, as they come."""
    arms = {
        id_: place
        for place, id_ in enumerate((BASELINE, CONTROL, *(workaround.id for workaround in issue.workarounds)))
    }
    return sorted(
        attempts, key=lambda row: (not row.counted, arms.get(row.attempt.arm, len(arms)), row.attempt.variant)
    )


def _subject(evidence: CellEvidence) -> Subject:
    """The arm that is worth running again: the arm and the variant that say most, in their own environment. For an
    inferred cell nothing was run, and the environment of another Python is not its own.
    """
    telling = evidence.telling
    if telling is None or evidence.ground is not None:
        return Subject(evidence.issue, evidence.build, evidence.cell.hardware)
    this_attempt = telling.attempt
    locked_by = this_attempt.id if hashed_requirements(telling.lock) else ""
    return Subject(
        evidence.issue, evidence.build, evidence.cell.hardware, this_attempt.arm, this_attempt.variant, locked_by
    )


def _log(telling: AttemptDetail | None, line: str) -> Markup:
    """Where the telling line stands in the log, or in what was raised; empty where it stands in neither."""
    if telling is None:
        return Markup()
    raised = telling.attempt.record.raised
    return excerpt(telling.log, line) or excerpt(raised.text if raised else "", line)


@router.get("/attempts/{attempt}")
def attempt(context: Context, attempt: str) -> Response:
    def load(session: Session) -> tuple[AttemptDetail, Issue, Build]:
        detail = find_attempt(session, attempt)
        return detail, find_issue(session, detail.attempt.issue), find_build(session, detail.attempt.build)[0]

    return context.answer(load, lambda loaded: context.page("attempt.html", attempt_page(context, *loaded)))


@router.get("/attempts/{attempt}/log.txt")
def log(context: Context, attempt: str) -> Response:
    return context.answer(
        lambda session: find_attempt(session, attempt),
        lambda detail: context.text(detail.log, "text/plain; charset=utf-8", "log.txt"),
    )


@router.get("/attempts/{attempt}/pylock.toml")
def lock(context: Context, attempt: str) -> Response:

    def show(detail: AttemptDetail) -> Response:
        if not detail.lock:
            raise _unpinned(f'the lock of attempt "{attempt}" is not stored here', attempt)
        return context.text(detail.lock, "application/toml", "pylock.toml")

    return context.answer(lambda session: find_attempt(session, attempt), show)


@router.get("/attempts/{attempt}/requirements.txt")
def pins(context: Context, attempt: str) -> Response:
    """The pins of its lock, by hash: for `uv pip install --require-hashes -r`, from any index."""

    def show(detail: AttemptDetail) -> Response:
        requirements = hashed_requirements(detail.lock)
        if not requirements:
            raise _unpinned(f'no lock of attempt "{attempt}" is stored here that pins by hash', attempt)
        return context.text(requirements, "text/plain; charset=utf-8", "requirements.txt")

    return context.answer(lambda session: find_attempt(session, attempt), show)


def _unpinned(message: str, attempt: str) -> NotFound:
    return NotFound(message, [("the attempt, with its packages by name and version", attempt_address(attempt))])


def attempt_page(context: RequestContext, detail: AttemptDetail, issue: Issue, build: Build) -> dict[str, Any]:
    """Everything templates/attempt.html shows. `log` and `traceback` are marked where the telling line stands;
    `traceback` is empty where the log has it. With `is_pinned` its lock can be installed by hash. `controls` are the
    control's values that are others, for which it does not count as the pass that it was.
    """
    this_attempt, line = detail.attempt, detail.judgement.line
    raised = this_attempt.record.raised.text.strip() if this_attempt.record.raised else ""
    in_log = raised in detail.log
    is_pinned = bool(hashed_requirements(detail.lock))
    return {
        "detail": detail,
        "issue": issue,
        "controls": {value.key: value.control for value in detail.difference.values} if detail.difference else {},
        "log": marked(detail.log, line),
        "traceback": Markup() if in_log else marked(raised, "" if line in detail.log else line),
        "has_mark": bool(line) and (line in detail.log or line in raised),
        "is_pinned": is_pinned,
        "commands": commands(
            Subject(
                issue,
                build,
                this_attempt.hardware,
                this_attempt.arm,
                this_attempt.variant,
                this_attempt.id if is_pinned else "",
            ),
            context.base,
        ),
    }
