"""`/errors`: paste a traceback or a log; the answer says which issue it is, where it was seen, and what helps.

What is pasted is held by the request alone: it is not stored, not logged, and no answer made of it is kept.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from fastapi import APIRouter, Response

from knowngood.app.dashboard.issues.workarounds import WorkaroundView, workarounds_of
from knowngood.app.domain.builds.build import Build
from knowngood.app.domain.issue import Issue
from knowngood.app.domain.verdicts.verdict import Cell
from knowngood.app.features.diagnose.bm25 import Likeness
from knowngood.app.features.diagnose.matcher import Explanation, Match, PastedLine, Strength, advise
from knowngood.app.features.diagnose.next_step import next_step
from knowngood.app.features.diagnose.schemas import ExplanationView
from knowngood.app.features.diagnose.service import told_of
from knowngood.app.web.forms import Form
from knowngood.app.web.request_context import Context, RequestContext
from knowngood.app.web.urls import API, issue_address

router = APIRouter(include_in_schema=False)

PASTE = "/errors"

_SEEN_SHOWN = 12
_WORDS_SHOWN = 8
_LONGEST_ECHO = 200_000  # characters that are sent back in the box, so that the build can be changed


@dataclass(frozen=True)
class MatchPart:
    """One issue that it is, or may be. `use_on` is the cell whose workarounds stand here; None where there is none."""

    issue: Issue
    title: str
    address: str
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


@dataclass(frozen=True)
class NearPart:
    issue: Issue
    title: str
    address: str
    percent: int
    words: tuple[str, ...]


@dataclass(frozen=True)
class Answered:
    """The answer to a paste. `note` says why its environment is no tested build, or what was assumed."""

    is_known: bool
    found: Explanation
    build: str
    matches: tuple[MatchPart, ...]
    nearest: tuple[NearPart, ...]
    silent: tuple[NearPart, ...]
    silent_address: str


@dataclass(frozen=True)
class PastePage:
    """`answered` is None before anything was pasted."""

    answered: Answered | None
    text: str
    wanted: str
    builds: tuple[str, ...]
    signatures: int
    limit_mib: int
    json_address: str


@router.get(PASTE)
def paste(context: Context) -> Response:
    return context.answer(
        context.known,
        lambda known: context.page(
            "paste.html", _page(context, known.issues, known.builds, {build for _, build, _ in known.cells})
        ),
    )


@router.post(PASTE)
def explain(context: Context, form: Form) -> Response:
    text, wanted = form.get("text", ""), form.get("build", "").strip()[:200]
    told = told_of(context.state, text, wanted)
    empty = _page(context, told.issues, told.knowledge.known.builds, told.knowledge.tested)
    answered = _answered(context, told) if text.strip() else None
    page = replace(empty, answered=answered, text=text[:_LONGEST_ECHO], wanted=wanted)
    return context.page("paste.html", page)


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
    )


def _answered(context: RequestContext, told: ExplanationView) -> Answered:
    found = told.explanation
    silent = [issue for issue in told.issues.values() if issue.silent]
    return Answered(
        is_known=found.is_known,
        found=found,
        build=found.resolved.build or "",
        matches=tuple(_match(context, one, told) for one in found.matches),
        nearest=_near(context, found.nearest, told.issues),
        silent=_near(context, found.silent, told.issues),
        silent_address=f"/?issues={','.join(issue.id for issue in silent)}",
    )


def _match(context: RequestContext, match: Match, told: ExplanationView) -> MatchPart:
    issue, builds = match.issue, told.knowledge.known.builds
    build = told.explanation.resolved.build or ""
    advice = advise(match, build, told.knowledge.known)
    shown = advice.shown
    several = len(advice.histories) > 1
    workarounds = _workarounds(context, issue, shown, builds)
    step = next_step(match, advice, told.knowledge.known)
    values = {**step.values, "workaround": workarounds[0].title if workarounds else ""}
    return MatchPart(
        issue=issue,
        title=context.title_of(issue),
        address=issue_address(issue.id, build=build),
        is_sure=match.strength is Strength.SURE,
        why=context.say(match.why),
        around=match.around,
        sentences=tuple(_sentence(class_, said, several=several) for class_, said in advice.histories.items()),
        here=advice.own,
        use_on=shown,
        workarounds=workarounds,
        seen=match.seen[:_SEEN_SHOWN],
        seen_more=max(0, len(match.seen) - _SEEN_SHOWN),
        to_do=context.say(step.step, **values),
    )


def _sentence(hardware: str, said: str, *, several: bool) -> str:
    return f"{hardware}: {said}" if several else f"{said[0].upper()}{said[1:]}"


def _workarounds(
    context: RequestContext, issue: Issue, shown: Cell | None, builds: Mapping[str, Build]
) -> tuple[WorkaroundView, ...]:
    return workarounds_of(issue, builds[shown.build], shown, context) if shown else ()


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
