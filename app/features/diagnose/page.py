"""`/errors`: paste a traceback or a log; the answer says which issue it is, where it was seen, and what helps.

What is pasted is held by the request alone: it is not stored, not logged, and no answer made of it is kept.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from fastapi import APIRouter, Response

from knowngood.app.dashboard.issues.workarounds import Remedy, remedies_of
from knowngood.app.domain.builds.build import Build
from knowngood.app.domain.issue import Issue
from knowngood.app.domain.verdicts.verdict import Cell
from knowngood.app.features.diagnose.bm25 import Likeness
from knowngood.app.features.diagnose.matcher import Explanation, Line, Match, Strength, advise
from knowngood.app.features.diagnose.schemas import Told
from knowngood.app.features.diagnose.service import told_of
from knowngood.app.web.forms import Form
from knowngood.app.web.html.status_labels import Sign, sign_of, word_of
from knowngood.app.web.request_context import Visit, Visiting
from knowngood.app.web.urls import API, cell_address, issue_address

router = APIRouter(include_in_schema=False)

PASTE = "/errors"

_SEEN_SHOWN = 12
_WORDS_SHOWN = 8
_LONGEST_ECHO = 200_000  # characters that are sent back in the box, so that the build can be changed


@dataclass(frozen=True)
class CellLine:
    """A cell in a word."""

    cell: Cell
    address: str
    sign: Sign
    word: str


@dataclass(frozen=True)
class MatchPart:
    """One issue that it is, or may be. `use_on` is the cell whose workarounds stand here; None where there is none."""

    issue: Issue
    title: str
    address: str
    is_sure: bool
    why: str
    around: tuple[Line, ...]
    sentences: tuple[str, ...]
    here: CellLine | None
    use_on: CellLine | None
    remedies: tuple[Remedy, ...]
    seen: tuple[CellLine, ...]
    seen_more: int


@dataclass(frozen=True)
class NearPart:
    issue: Issue
    title: str
    address: str
    percent: int
    words: tuple[str, ...]


@dataclass(frozen=True)
class Answered:
    """What is known of the paste. `note` says why its environment is no tested build, or what was assumed."""

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
def paste(visit: Visiting) -> Response:
    with visit.reading() as session:
        known = visit.known(session)
    return visit.page("paste.html", _page(visit, known.issues, known.builds, {build for _, build, _ in known.cells}))


@router.post(PASTE)
def explain(visit: Visiting, form: Form) -> Response:
    text, wanted = form.get("text", ""), form.get("build", "").strip()[:200]
    told = told_of(visit.house, text, wanted)
    empty = _page(visit, told.issues, told.measured.builds, told.measured.tested)
    answered = _answered(visit, told) if text.strip() else None
    page = replace(empty, answered=answered, text=text[:_LONGEST_ECHO], wanted=wanted)
    return visit.page("paste.html", page)


def _page(visit: Visit, issues: Mapping[str, Issue], builds: Mapping[str, Build], tested: Collection[str]) -> PastePage:
    """The box before anything is pasted, with the measured builds to choose from, the newest first."""
    known = sorted(builds.keys() & set(tested), key=lambda id_: builds[id_].build_id, reverse=True)
    return PastePage(
        answered=None,
        text="",
        wanted="",
        builds=tuple(known),
        signatures=len(issues),
        limit_mib=visit.house.rules.body_limit >> 20,
        json_address=f"{API}{PASTE}",
    )


def _answered(visit: Visit, told: Told) -> Answered:
    found = told.explanation
    silent = [issue for issue in told.issues.values() if issue.silent]
    return Answered(
        is_known=found.is_known,
        found=found,
        build=found.resolved.build or "",
        matches=tuple(_match(visit, one, told) for one in found.matches),
        nearest=_near(visit, found.nearest, told.issues),
        silent=_near(visit, found.silent, told.issues),
        silent_address=f"/?issues={','.join(issue.id for issue in silent)}",
    )


def _match(visit: Visit, match: Match, told: Told) -> MatchPart:
    issue, builds = match.issue, told.measured.builds
    build = told.explanation.resolved.build or ""
    advice = advise(match, build, told.measured)
    shown = advice.shown
    several = len(advice.histories) > 1
    return MatchPart(
        issue=issue,
        title=visit.in_language(issue.title, issue.title_zh),
        address=issue_address(issue.id, build=build),
        is_sure=match.strength is Strength.SURE,
        why=visit.say(match.why),
        around=match.around,
        sentences=tuple(_sentence(class_, said, several=several) for class_, said in advice.histories.items()),
        here=_line(visit, advice.own) if advice.own else None,
        use_on=_line(visit, shown) if shown else None,
        remedies=_remedies(visit, issue, shown, builds),
        seen=tuple(_line(visit, cell) for cell in match.seen[:_SEEN_SHOWN]),
        seen_more=max(0, len(match.seen) - _SEEN_SHOWN),
    )


def _sentence(hardware: str, said: str, *, several: bool) -> str:
    return f"{hardware}: {said}" if several else f"{said[0].upper()}{said[1:]}"


def _remedies(visit: Visit, issue: Issue, shown: Cell | None, builds: Mapping[str, Build]) -> tuple[Remedy, ...]:
    return remedies_of(issue, builds[shown.build], shown, visit) if shown else ()


def _line(visit: Visit, cell: Cell) -> CellLine:
    sign = sign_of(cell)
    return CellLine(cell, cell_address(cell.issue, cell.build, cell.hardware), sign, word_of(cell, visit.language))


def _near(visit: Visit, found: tuple[Likeness, ...], issues: Mapping[str, Issue]) -> tuple[NearPart, ...]:
    return tuple(
        NearPart(
            issue=(issue := issues[one.name]),
            title=visit.in_language(issue.title, issue.title_zh),
            address=issue_address(issue.id),
            percent=round(one.score * 100),
            words=one.words[:_WORDS_SHOWN],
        )
        for one in found
    )
