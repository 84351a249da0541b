"""`/errors`: paste a traceback or a log; the answer says which issue it is, where it was seen, and what helps.

What is pasted is held by the request alone: it is not stored, not logged, and no answer made of it is kept. The answer
has an address all the same: it names the issues that were found and the build, and nothing of the text.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from knowngood.ask.explain.answer import Explanation, Match, Strength, Why, advise, command_of, match_of, near_issue
from knowngood.ask.explain.messages import shipped_messages
from knowngood.ask.explain.service import explain_text
from knowngood.domain.issue import Issue
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.message import Message
from knowngood.domain.threads import USUAL
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import NOT_RUN, Cell, Verdict
from knowngood.matrix.issues.workarounds import WorkaroundView, workarounds_of
from knowngood.matrix.overview.selection import Names, Words, named_builds, named_issues
from knowngood.web.errors import InvalidParameter
from knowngood.web.forms import Form
from knowngood.web.request_context import Context, RequestContext, uncached
from knowngood.web.urls import API, ERRORS, asking, matrix_address

router = APIRouter(include_in_schema=False)

PASTE = ERRORS

_RECALLED = 20  # issues of each kind that an address is read for
_LONGEST_SHORT = 2000  # characters in an address
_LONGEST_ECHO = 200_000  # characters that are sent back in the box, so that the build can be changed


class RecalledQuery(BaseModel):
    """The answer that an address keeps: issues that it surely is, that it may be, that are nearest by words, and those
    about wrong numbers; and the messages of installations. `known` is `no` where there was no match at all.
    """

    issue: Names
    maybe: Names
    message: Names
    near: Names
    silent: Names
    build: Words = ""
    known: Words = ""

    @property
    def is_empty(self) -> bool:
        return not (self.issue or self.maybe or self.message or self.near or self.silent or self.known)


@router.get(PASTE)
def paste(context: Context, query: Annotated[RecalledQuery, Query()]) -> Response:
    def show(known: Known) -> Response:
        explanation = None if query.is_empty else _recalled(query, known)
        return _page(context, explanation, known.issues, known, wanted=query.build)

    return context.answer(context.known, show)


@router.get("/e")
def explain_short(context: Context, q: Annotated[str, Query(max_length=_LONGEST_SHORT)] = "") -> Response:
    """Explain a line of text by its address, such as a program's warning may hold. Nobody keeps the answer."""
    return uncached(answer_paste(context, q))


@router.post(PASTE)
def explain(context: Context, form: Form) -> Response:
    return answer_paste(context, form.get("text", ""), form.get("build", "").strip()[:200])


def answer_paste(context: RequestContext, text: str, wanted: str = "") -> Response:
    """Answer a pasted text. `wanted` outweighs the build that the text names."""
    problem = "" if text.strip() else context.say("Nothing was pasted: the text of the error is missing.")
    try:
        explanation, issues, known = explain_text(context.state, text, wanted)
    except InvalidParameter as error:
        problem = str(error)
        explanation, issues, known = explain_text(context.state, text, "")
    return _page(context, None if problem else explanation, issues, known, text=text, wanted=wanted, problem=problem)


def _page(
    context: RequestContext,
    explanation: Explanation | None,
    issues: Mapping[str, Issue],
    known: Known,
    *,
    text: str = "",
    wanted: str = "",
    problem: str = "",
) -> Response:
    """`explanation` is None before anything is pasted; without a `text` it is what an address names. `problem` says why
    the name that was given is no build. The measured builds to choose from stand newest first.
    """
    tested = known.builds.keys() & set(known.tested)
    matches = [(match, issues[match.issue]) for match in explanation.matches] if explanation else []
    return context.page(
        "paste.html",
        explanation,
        HTTPStatus.UNPROCESSABLE_ENTITY if problem else HTTPStatus.OK,
        issues=issues,
        matches=[(match, issue, *_helped(context, match, issue, known)) for match, issue in matches],
        cell_of=lambda issue, seen: known.cell(issue, known.builds[seen.build], seen.hardware),
        command_of=command_of,
        address=_address_of(explanation) if explanation else "",
        silent_address=matrix_address(issues=",".join(issue.id for issue in issues.values() if issue.silent)),
        text=text[:_LONGEST_ECHO],
        wanted=wanted,
        problem=problem,
        builds=sorted(tested, key=lambda id_: known.builds[id_].build_id, reverse=True),
        limit_mib=context.state.rules.body_limit >> 20,
        json_address=f"{API}{PASTE}",
        report_address=f"https://github.com/{USUAL}/issues/new/choose",
    )


def _address_of(explanation: Explanation) -> str:
    """The address that shows the same explanation again, except for what only the text holds."""
    return asking(
        PASTE,
        issue=",".join(match.issue for match in explanation.matches if match.strength is Strength.SURE),
        maybe=",".join(match.issue for match in explanation.matches if match.strength is not Strength.SURE),
        message=",".join(meaning.id for meaning in explanation.meanings),
        near=",".join(near.issue for near in explanation.nearest),
        silent=",".join(near.issue for near in explanation.silent),
        known="" if explanation.matches or explanation.meanings else "no",
        build=explanation.build or "",
    )


def _recalled(query: RecalledQuery, known: Known) -> Explanation:
    """Raises NotFound for an issue that has left the catalogue, and InvalidParameter for a build."""
    issues = tuple(known.issues.values())
    build = named_builds(known.builds.values(), [query.build], "build")[0].id if query.build else None

    def named(ids: Sequence[str], field: str) -> tuple[Issue, ...]:
        """In the order of the address, which has the likeliest first."""
        return tuple(issue for id_ in ids[:_RECALLED] for issue in named_issues(issues, [id_], field))

    groups = ((query.issue, "issue", Strength.SURE), (query.maybe, "maybe", Strength.POSSIBLE))
    matches = [
        advise(match_of(issue, strength, Why.KEPT), issue, build, known)
        for ids, field, strength in groups
        for issue in named(ids, field)
    ]
    meanings = tuple(known.meaning for known in shipped_messages() if known.meaning.id in query.message)
    return Explanation(
        known=bool(query.issue) or any(meaning.strength is Strength.SURE for meaning in meanings),
        build=build,
        meanings=meanings,
        matches=tuple(matches),
        nearest=tuple(map(near_issue, named(query.near, "near"))),
        silent=tuple(map(near_issue, named(query.silent, "silent"))),
    )


def _helped(
    context: RequestContext, match: Match, issue: Issue, known: Known
) -> tuple[Sequence[WorkaroundView], Message]:
    """The workarounds of a match, and what to do. Where none was measured the workarounds are all of them, as not tried
    on the newest build.
    """
    newest = max(known.builds, key=lambda id_: known.builds[id_].build_id, default="")
    cell = Cell(issue.id, newest, CPU_CLASS, Verdict.NOT_RUN, NOT_RUN)
    if shown := match.cures_on:
        cell = known.cell(issue, known.builds[shown.build], shown.hardware)
    is_sure = match.strength is Strength.SURE
    workarounds = workarounds_of(issue, cell, known, context) if is_sure else ()
    title = workarounds[0].title if workarounds else ""
    return workarounds, Message(match.to_do.key, **{**match.to_do.values, "workaround": title})
