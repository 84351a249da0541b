"""`/attempts/{id}`: one execution as measured: its log with the telling line lit, its environment, how to repeat it."""

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Response
from markupsafe import Markup

from knowngood.app.dashboard.evidence.hashed_requirements import hashed_requirements
from knowngood.app.dashboard.evidence.reproduce import Commands, Subject, commands
from knowngood.app.dashboard.lookups import find_attempt, find_build, find_issue
from knowngood.app.domain.builds.build import Build
from knowngood.app.domain.issue import Issue
from knowngood.app.domain.measuring.job import Attempt
from knowngood.app.domain.measuring.machine import Machine
from knowngood.app.domain.verdicts.outcome import Judgement, RunRecord
from knowngood.app.domain.verdicts.voids import Void
from knowngood.app.store.queries import AttemptDetail, ReceptionDetail
from knowngood.app.web.errors import NotFound
from knowngood.app.web.html.markdown import marked
from knowngood.app.web.html.status_labels import OUTCOME_WORDS, StatusLabel, sign_of_outcome
from knowngood.app.web.request_context import Context, RequestContext
from knowngood.app.web.urls import API, attempt_address, build_address, cell_address, issue_address, pins_address

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class AttemptPage:
    """`log` and `traceback` are marked where the telling line stands; `traceback` is empty where the log has it."""

    attempt: Attempt
    record: RunRecord
    judgement: Judgement
    is_counted: bool
    void: Void | None
    reception: ReceptionDetail
    sign: StatusLabel
    word: str
    issue_title: str
    issue_address: str
    build_address: str
    cell_address: str
    machine: Machine | None
    packages: Mapping[str, str]
    log: Markup
    traceback: Markup
    has_mark: bool
    log_address: str
    lock_address: str
    pins_address: str
    commands: Commands
    json_address: str


@router.get("/attempts/{attempt}")
def attempt(context: Context, attempt: str) -> Response:
    with context.reading() as session:
        detail = find_attempt(session, attempt)
        issue = find_issue(session, detail.attempt.issue)
        build, _ = find_build(session, detail.attempt.build)
    return context.page("attempt.html", attempt_page(context, detail, issue, build))


@router.get("/attempts/{attempt}/log.txt")
def log(context: Context, attempt: str) -> Response:
    with context.reading() as session:
        detail = find_attempt(session, attempt)
    return context.text(detail.log, "text/plain; charset=utf-8", "log.txt")


@router.get("/attempts/{attempt}/pylock.toml")
def lock(context: Context, attempt: str) -> Response:
    with context.reading() as session:
        detail = find_attempt(session, attempt)
    if not detail.lock:
        near = [("the attempt, with its packages by name and version", attempt_address(attempt))]
        raise NotFound(f'the lock of attempt "{attempt}" is not stored here', near)
    return context.text(detail.lock, "application/toml", "pylock.toml")


@router.get("/attempts/{attempt}/requirements.txt")
def pins(context: Context, attempt: str) -> Response:
    """What its lock pins, by hash: for `uv pip install --require-hashes -r`, from whatever index."""
    with context.reading() as session:
        detail = find_attempt(session, attempt)
    found = hashed_requirements(detail.lock)
    if not found:
        near = [("the attempt, with its packages by name and version", attempt_address(attempt))]
        raise NotFound(f'no lock of attempt "{attempt}" is stored here that pins by hash', near)
    return context.text(found, "text/plain; charset=utf-8", "requirements.txt")


def attempt_page(context: RequestContext, detail: AttemptDetail, issue: Issue, build: Build) -> AttemptPage:
    one, record, judgement = detail.attempt, detail.attempt.record, detail.judgement
    own = attempt_address(one.id)
    raised = record.raised.text.strip() if record.raised else ""
    in_log = raised in detail.log
    is_pinned = bool(hashed_requirements(detail.lock))
    return AttemptPage(
        attempt=one,
        record=record,
        judgement=judgement,
        is_counted=detail.counted,
        void=detail.void,
        reception=detail.reception,
        sign=sign_of_outcome(judgement.outcome),
        word=context.say(OUTCOME_WORDS[judgement.outcome]),
        issue_title=context.in_language(issue.title, issue.title_zh),
        issue_address=issue_address(issue.id),
        build_address=build_address(build.id, one.hardware),
        cell_address=cell_address(one.issue, one.build, one.hardware),
        machine=detail.machine.brief if detail.machine else None,
        packages=dict(sorted(detail.packages.items())),
        log=marked(detail.log, judgement.line),
        traceback=Markup() if in_log else marked(raised, "" if judgement.line in detail.log else judgement.line),
        has_mark=bool(judgement.line) and (judgement.line in detail.log or judgement.line in raised),
        log_address=f"{own}/log.txt",
        lock_address=f"{own}/pylock.toml" if detail.lock else "",
        pins_address=pins_address(one.id) if is_pinned else "",
        commands=commands(
            Subject(issue, build, one.hardware, one.arm, one.variant, one.id if is_pinned else ""), context.base
        ),
        json_address=f"{API}{own}",
    )
