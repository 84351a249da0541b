"""`/errors`: paste a traceback or a log; the answer says which issue it is, where it was seen, and what helps.

What is pasted is held by the request alone: it is not stored, not logged, and no answer made of it is kept. The answer
has an address all the same: it names the issues that were found and the build, and nothing of the text.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from knowngood.ask.explain.bm25 import Likeness
from knowngood.ask.explain.matcher import (
    Explanation,
    Match,
    PastedLine,
    Strength,
    advise,
    is_elsewhere,
    recalled,
    told_first,
)
from knowngood.ask.explain.next_step import next_step
from knowngood.ask.explain.schemas import ExplanationView
from knowngood.ask.explain.service import told_of
from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.naming.threads import USUAL
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import Cell, Verdict
from knowngood.matrix.issues.workarounds import WorkaroundView, workarounds_of
from knowngood.matrix.overview.selection import Names, Words, named_builds, named_issues
from knowngood.web.errors import InvalidParameter
from knowngood.web.forms import Form
from knowngood.web.html.grid import TitledIssue
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API, ERRORS, issue_address, matrix_address, upgrade_address

router = APIRouter(include_in_schema=False)

PASTE = ERRORS

_SEEN_SHOWN = 12
_WORDS_SHOWN = 8
_RECALLED = 20  # issues of each kind that an address is read for
_LONGEST_ECHO = 200_000  # characters that are sent back in the box, so that the build can be changed


@dataclass(frozen=True)
class MatchPart(TitledIssue):
    """One issue that it is, or may be. `use_on` is the cell whose workarounds stand here; None where there is none."""

    is_sure: bool
    why: str
    around: tuple[PastedLine, ...]
    sentences: tuple[str, ...]
    here: Cell | None
    use_on: Cell | None
    workarounds: tuple[WorkaroundView, ...]
    seen: tuple[Cell, ...]
    seen_more: int
    to_do: str
    command: str
    upgrade: str


@dataclass(frozen=True)
class NearPart(TitledIssue):
    percent: int
    words: tuple[str, ...]


@dataclass(frozen=True)
class Answered:
    """The answer to a paste, or `found` None the answer of an address that one was given. `address` is that one: it
    shows the same again, but for what the text alone has: `wheel` says what its GPUs find in its wheel.
    """

    is_known: bool
    found: Explanation | None
    address: str
    build: str
    matches: tuple[MatchPart, ...]
    nearest: tuple[NearPart, ...]
    silent: tuple[NearPart, ...]
    silent_address: str
    wheel: tuple[str, ...] = ()


@dataclass(frozen=True)
class PastePage:
    """`answered` is None before anything was pasted. `problem` is why a build that was named is none."""

    answered: Answered | None
    text: str
    wanted: str
    builds: tuple[str, ...]
    signatures: int
    limit_mib: int
    json_address: str
    report_address: str
    problem: str = ""


class RecalledQuery(BaseModel):
    """The answer that an address keeps: issues that it surely is, that it may be, that are nearest by words, and those
    about wrong numbers. `known` is `no` where there was no match at all.
    """

    issue: Names
    maybe: Names
    near: Names
    silent: Names
    build: Words = ""
    known: Words = ""

    @property
    def is_empty(self) -> bool:
        return not (self.issue or self.maybe or self.near or self.silent or self.known)


@router.get(PASTE)
def paste(context: Context, query: Annotated[RecalledQuery, Query()]) -> Response:
    def show(known: Known) -> Response:
        page = _page(context, known.issues, known.builds, known.tested)
        if not query.is_empty:
            page = replace(page, answered=_recalled(context, query, known), wanted=query.build)
        return context.page("paste.html", page)

    return context.answer(context.known, show)


@router.post(PASTE)
def explain(context: Context, form: Form) -> Response:
    return answer_paste(context, form.get("text", ""), form.get("build", "").strip()[:200])


def answer_paste(context: RequestContext, text: str, wanted: str = "") -> Response:
    """`wanted` outweighs the build that the text tells of."""
    problem = "" if text.strip() else context.say("Nothing was pasted: the text of the error is missing.")
    try:
        told = told_of(context.state, text, wanted)
    except InvalidParameter as error:
        problem, told = str(error), told_of(context.state, text, "")
    empty = _page(context, told.issues, told.knowledge.known.builds, told.knowledge.tested)
    answered = _answered(context, told) if text.strip() and not problem else None
    page = replace(empty, answered=answered, text=text[:_LONGEST_ECHO], wanted=wanted, problem=problem)
    return context.page("paste.html", page, HTTPStatus.UNPROCESSABLE_ENTITY if problem else HTTPStatus.OK)


def _page(
    context: RequestContext, issues: Mapping[str, Issue], builds: Mapping[str, Build], tested: Collection[str]
) -> PastePage:
    """The box before anything is pasted, with the measured builds to choose from, the newest first."""
    known = sorted(builds.keys() & set(tested), key=lambda id_: builds[id_].build_id, reverse=True)
    return PastePage(
        answered=None,
        text="",
        wanted="",
        builds=tuple(known),
        signatures=len(issues),
        limit_mib=context.state.rules.body_limit >> 20,
        json_address=f"{API}{PASTE}",
        report_address=f"https://github.com/{USUAL}/issues/new/choose",
    )


def _answered(context: RequestContext, told: ExplanationView) -> Answered:
    found = told.explanation
    build = found.resolved.build or ""
    kept = {
        "issue": [one.issue.id for one in found.matches if one.strength is Strength.SURE],
        "maybe": [one.issue.id for one in found.matches if one.strength is not Strength.SURE],
        "near": [one.name for one in found.nearest],
        "silent": [one.name for one in found.silent],
    }
    said = {name: ",".join(ids) for name, ids in kept.items() if ids}
    said |= {"known": "no"} if not found.matches else {}
    return Answered(
        is_known=found.is_known,
        found=found,
        address=f"{PASTE}?{urlencode({**said, **({'build': build} if build else {})})}",
        build=build,
        matches=tuple(
            _match(context, one, build, told.knowledge.known, elsewhere=is_elsewhere(found)) for one in found.matches
        ),
        nearest=_near(context, found.nearest, told.issues),
        silent=_near(context, found.silent, told.issues),
        silent_address=_silent_address(told.issues),
        wheel=told_first(found, told.knowledge.known),
    )


def _recalled(context: RequestContext, query: RecalledQuery, known: Known) -> Answered:
    """Raises NotFound for an issue that has left the catalogue, and InvalidParameter for a build."""
    issues = tuple(known.issues.values())
    build = named_builds(known.builds.values(), [query.build], "build")[0].id if query.build else ""

    def named(ids: Sequence[str], field: str) -> tuple[Issue, ...]:
        """In the order of the address, which has the likeliest first."""
        return tuple(issue for id_ in ids[:_RECALLED] for issue in named_issues(issues, [id_], field))

    matches = [recalled(issue, Strength.SURE, known) for issue in named(query.issue, "issue")]
    matches += [recalled(issue, Strength.POSSIBLE, known) for issue in named(query.maybe, "maybe")]
    near, silent = (
        tuple(Likeness(issue.id, 0, ()) for issue in named(ids, field))
        for ids, field in ((query.near, "near"), (query.silent, "silent"))
    )
    return Answered(
        is_known=bool(query.issue),
        found=None,
        address=context.address,
        build=build,
        matches=tuple(_match(context, one, build, known) for one in matches),
        nearest=_near(context, near, known.issues),
        silent=_near(context, silent, known.issues),
        silent_address=_silent_address(known.issues),
    )


def _silent_address(issues: Mapping[str, Issue]) -> str:
    return matrix_address(issues=",".join(issue.id for issue in issues.values() if issue.silent))


def _match(context: RequestContext, match: Match, build: str, known: Known, *, elsewhere: bool = False) -> MatchPart:
    """`build` is the reader's, empty where none is known."""
    issue = match.issue
    advice = advise(match, build, known)
    shown = advice.shown
    is_sure = match.strength is Strength.SURE
    several = len(advice.histories) > 1
    workarounds = _workarounds(context, issue, shown, known.builds) if is_sure else ()
    step = next_step(match, advice, known, elsewhere=elsewhere)
    values = {**step.values, "workaround": workarounds[0].title if workarounds else ""}
    return MatchPart(
        issue=issue,
        title=context.title_of(issue),
        address=issue_address(issue.id, build=build),
        is_sure=is_sure,
        why=context.say(match.why),
        around=match.around,
        sentences=tuple(
            f"{class_}: {said}" if several else f"{said[0].upper()}{said[1:]}"
            for class_, said in advice.histories.items()
        ),
        here=advice.own,
        use_on=shown,
        workarounds=workarounds,
        seen=match.seen[:_SEEN_SHOWN],
        seen_more=max(0, len(match.seen) - _SEEN_SHOWN),
        to_do=context.say(step.step, **values),
        command=step.command,
        upgrade=upgrade_address(build or shown.build, issues=issue.id) if shown else "",
    )


def _workarounds(
    context: RequestContext, issue: Issue, shown: Cell | None, builds: Mapping[str, Build]
) -> tuple[WorkaroundView, ...]:
    """Where none was measured all of them, as not tried on the newest build."""
    newest = max(builds, key=lambda id_: builds[id_].build_id)
    cell = shown or Cell(issue.id, newest, CPU_CLASS, Verdict.NOT_RUN, "", None)
    return workarounds_of(issue, builds[cell.build], cell, context)


def _near(context: RequestContext, found: tuple[Likeness, ...], issues: Mapping[str, Issue]) -> tuple[NearPart, ...]:
    return tuple(
        NearPart(
            issue=(issue := issues[one.name]),
            title=context.title_of(issue),
            address=issue_address(issue.id),
            percent=round(one.score * 100),
            words=one.words[:_WORDS_SHOWN],
        )
        for one in found
    )
