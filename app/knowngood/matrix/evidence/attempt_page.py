"""`/attempts/{id}`: one execution as measured: its log with the telling line lit, its environment, how to repeat it."""

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Response
from markupsafe import Markup

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue
from knowngood.matrix.evidence.hashed_requirements import hashed_requirements
from knowngood.matrix.evidence.reproduce import Commands, Subject, commands
from knowngood.matrix.lookups import find_attempt, find_build, find_issue
from knowngood.store.engine import Session
from knowngood.store.queries import AttemptDetail
from knowngood.web.errors import NotFound
from knowngood.web.html.markdown import marked
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import attempt_address

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class AttemptPage:
    """`log` and `traceback` are marked where the telling line stands; `traceback` is empty where the log has it. With
    `is_pinned` its lock can be installed by hash.

    `controls` are the control's values that are others, for which it does not count as the pass that it was.
    """

    detail: AttemptDetail
    issue: Issue
    controls: Mapping[str, str]
    log: Markup
    traceback: Markup
    has_mark: bool
    is_pinned: bool
    commands: Commands


@router.get("/attempts/{attempt}")
def attempt(context: Context, attempt: str) -> Response:
    def load(session: Session) -> tuple[AttemptDetail, Issue, Build]:
        detail = find_attempt(session, attempt)
        return detail, find_issue(session, detail.attempt.issue), find_build(session, detail.attempt.build)[0]

    return context.answer(load, lambda found: context.page("attempt.html", attempt_page(context, *found)))


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
    """The pins of its lock, by hash: for `uv pip install --require-hashes -r`, from whatever index."""

    def show(detail: AttemptDetail) -> Response:
        found = hashed_requirements(detail.lock)
        if not found:
            raise _unpinned(f'no lock of attempt "{attempt}" is stored here that pins by hash', attempt)
        return context.text(found, "text/plain; charset=utf-8", "requirements.txt")

    return context.answer(lambda session: find_attempt(session, attempt), show)


def _unpinned(message: str, attempt: str) -> NotFound:
    return NotFound(message, [("the attempt, with its packages by name and version", attempt_address(attempt))])


def attempt_page(context: RequestContext, detail: AttemptDetail, issue: Issue, build: Build) -> AttemptPage:
    one, line = detail.attempt, detail.judgement.line
    raised = one.record.raised.text.strip() if one.record.raised else ""
    in_log = raised in detail.log
    is_pinned = bool(hashed_requirements(detail.lock))
    return AttemptPage(
        detail=detail,
        issue=issue,
        controls={one.key: one.control for one in detail.difference.values} if detail.difference else {},
        log=marked(detail.log, line),
        traceback=Markup() if in_log else marked(raised, "" if line in detail.log else line),
        has_mark=bool(line) and (line in detail.log or line in raised),
        is_pinned=is_pinned,
        commands=commands(
            Subject(issue, build, one.hardware, one.arm, one.variant, one.id if is_pinned else ""), context.base
        ),
    )
