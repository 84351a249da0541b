"""`/upgrade`: which build to move to, for what a team watches. `/upgrade.md`: the note for the pull request.

An environment that is pasted is held by its request alone: it leads to the address of the build that it is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup
from pydantic import Field

from app.domain.build_names import find_build
from app.domain.constraints import Constraints
from app.domain.errors import UnknownBuild
from app.domain.prospects import Candidate, Item, Prospect, Rating, Said
from app.domain.upgrade import ENOUGH, RANKING_WORDS, Advice, Decision
from app.formats.migration_note import migration_note
from app.formats.question import BadField, Grounds
from app.formats.upgrade_question import UnknownStart, start_name, start_of
from app.formats.upgrade_words import (
    COLUMN_WORDS,
    PROSPECT_WORDS,
    RATING_WORDS,
    Change,
    Step,
    because,
    changes,
    figures,
    index_of,
    left_out_by_reason,
    requirements,
    steps,
    verdict,
)
from app.web.addresses import build_address, cell_address, compare_address, issue_address
from app.web.errors import BadQuestion
from app.web.forms import Form
from app.web.prose import markdown
from app.web.selection import Words
from app.web.signs import WORDS, Sign, sign_of
from app.web.squares import Choice
from app.web.upgrading import UpgradeQuery, advice_on
from app.web.visit import API, Visit, Visiting

router = APIRouter(include_in_schema=False)

UPGRADE = "/upgrade"
NOTE = "/upgrade.md"

_MARKDOWN = "text/markdown; charset=utf-8"


class UpgradePageQuery(UpgradeQuery):
    to: Annotated[Words, Field(description="The candidate that is told of; the best unless said")] = ""

    @property
    def is_constrained(self) -> bool:
        named = (self.python, self.cuda, self.driver, self.hardware, self.pin, self.severity)
        return any(named) or self.enough is not None


@dataclass(frozen=True)
class Figure:
    """One count of a candidate under the head of its column; it leads to its issues where there are any."""

    head: str
    text: str
    address: str


@dataclass(frozen=True)
class Row:
    """One candidate of the table. `address` shows it below."""

    build: str
    address: str
    figures: tuple[Figure, ...]
    rating: Rating
    word: str
    why: str
    is_shown: bool


@dataclass(frozen=True)
class Mark:
    sign: Sign
    word: str
    address: str


@dataclass(frozen=True)
class ItemLine:
    """One watched issue. `elsewhere` is the build that answers, where it is another Python of the candidate."""

    issue: str
    title: str
    address: str
    component: str
    severity: str
    is_silent: bool
    is_new: bool
    before: Mark
    after: Mark
    elsewhere: str
    reason: str
    cures: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    id: str
    heading: str
    lines: tuple[ItemLine, ...]
    is_folded: bool


@dataclass(frozen=True)
class StepLine:
    issue: str
    address: str
    title: str
    body: Markup
    why: str


@dataclass(frozen=True)
class StepGroup:
    """Workarounds to do one thing with. `has_snippets` shows their text too."""

    heading: str
    meaning: str
    lines: tuple[StepLine, ...]
    has_snippets: bool


@dataclass(frozen=True)
class Shown:
    """The candidate that is told of."""

    build: str
    address: str
    compare_address: str
    is_best: bool
    why: str
    changes: tuple[Change, ...]
    requirements: str
    index: Markup
    sections: tuple[Section, ...]
    steps: tuple[StepGroup, ...]
    missing: str
    commands: str
    note: str
    note_address: str


@dataclass(frozen=True)
class LeftOutLine:
    """Builds that break the same constraints."""

    reason: str
    builds: tuple[Choice, ...]


@dataclass(frozen=True)
class Answer:
    """`unmeasured` are candidates of which nothing is known, `find_out` what measures the build one is on."""

    decision: Decision
    start: str
    start_address: str
    watched: str
    must: tuple[str, ...]
    verdict: str
    because: str
    notes: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    unmeasured: tuple[Row, ...]
    left_out: tuple[LeftOutLine, ...]
    left_out_count: int
    find_out: str
    shown: Shown | None


@dataclass(frozen=True)
class UpgradePage:
    """`answer` is None where no build is named yet, or the question has a `problem`; `nearest` may have been meant."""

    query: UpgradePageQuery
    answer: Answer | None
    problem: str
    nearest: tuple[Choice, ...]
    builds: tuple[str, ...]
    lists: tuple[str, ...]
    components: tuple[str, ...]
    pythons: tuple[str, ...]
    classes: tuple[str, ...]
    severities: tuple[str, ...]
    ranking: tuple[str, ...]
    enough: int
    environment: str
    json_address: str


@router.get(UPGRADE)
def upgrade(visit: Visiting, query: Annotated[UpgradePageQuery, Query()]) -> Response:
    return _page(visit, query, visit.knowing().grounds)


@router.post(UPGRADE)
def upgrade_from_environment(visit: Visiting, form: Form) -> Response:
    """Leads to the page of the build that the environment is; nothing of it is kept."""
    grounds = visit.house.knowledge.now().grounds
    content, python = form.get("environment", ""), form.get("python", "").strip()
    named = {name: form[name].strip() for name in ("watch", "component") if form.get(name, "").strip()}
    query = UpgradePageQuery.model_validate({"python": python, **{name: [text] for name, text in named.items()}})
    try:
        found = start_of("", content, python, grounds)
    except BadField as error:
        return _refused(visit, query, grounds, error.message, (), content)
    if found.build is None:
        return _refused(visit, query, grounds, found.note or found.asked, found.nearest, content)
    address = f"{UPGRADE}{query.asking(start=start_name(found), python='')}"
    return RedirectResponse(address, HTTPStatus.SEE_OTHER, headers={"Cache-Control": "no-store"})


@router.get(NOTE)
def note(visit: Visiting, query: Annotated[UpgradePageQuery, Query()]) -> Response:
    grounds = visit.knowing().grounds
    try:
        advice = advice_on(query.asked, grounds, visit.house)
    except BadField as error:
        raise BadQuestion(error.message, error.field) from None
    shown = _shown_of(advice, query.to)
    if shown is None:
        raise BadQuestion("no newer build may be chosen, so that there is nothing to note", "from")
    name = f"upgrade-{shown.build.id}.md".replace("+", "-")
    return Response(_note(visit, advice, shown, query), media_type=_MARKDOWN, headers=visit.attached(name))


def _page(visit: Visit, query: UpgradePageQuery, grounds: Grounds) -> Response:
    if not query.start.strip():
        return visit.page("upgrade.html", upgrade_page(query, grounds))
    try:
        advice = advice_on(query.asked, grounds, visit.house)
    except UnknownStart as error:
        return _refused(visit, query, grounds, error.message, error.nearest)
    except BadField as error:
        return _refused(visit, query, grounds, f"{error.field}: {error.message}", ())
    return visit.page("upgrade.html", upgrade_page(query, grounds, answer=_answer(visit, query, advice)))


def _refused(
    visit: Visit, query: UpgradePageQuery, grounds: Grounds, problem: str, nearest: Sequence[str], environment: str = ""
) -> Response:
    near = tuple(Choice(one, f"{UPGRADE}{query.asking(start=one)}", is_chosen=False) for one in nearest)
    page = upgrade_page(query, grounds, problem=problem, nearest=near, environment=environment)
    return visit.page("upgrade.html", page, HTTPStatus.UNPROCESSABLE_ENTITY)


def upgrade_page(
    query: UpgradePageQuery,
    grounds: Grounds,
    *,
    answer: Answer | None = None,
    problem: str = "",
    nearest: tuple[Choice, ...] = (),
    environment: str = "",
) -> UpgradePage:
    """Everything templates/upgrade.html shows, as values."""
    known = grounds.known
    newest_first = sorted(known.builds.values(), key=lambda build: build.build_id, reverse=True)
    pythons = {build.python for build in newest_first}
    return UpgradePage(
        query=query,
        answer=answer,
        problem=problem,
        nearest=nearest,
        builds=tuple(build.id for build in newest_first),
        lists=tuple(grounds.lists),
        components=tuple(sorted({issue.component for issue in known.issues.values()}, key=str.casefold)),
        pythons=tuple(sorted(pythons, key=lambda python: [int(part) for part in python.split(".")])),
        classes=known.hardware,
        severities=("low", "medium", "high", "critical"),
        ranking=RANKING_WORDS,
        enough=round(ENOUGH * 100),
        environment=environment,
        json_address=f"{API}{UPGRADE}{query.asking(to='')}" if answer else f"{API}/builds",
    )


def _answer(visit: Visit, query: UpgradePageQuery, advice: Advice) -> Answer:
    shown = _shown_of(advice, query.to)
    rows = [_row(visit, query, one, is_shown=one is shown) for one in advice.candidates]
    known = [bool(one.answered) for one in advice.candidates]
    say = partial(_said, visit)
    return Answer(
        decision=advice.decision,
        start=advice.start.id,
        start_address=build_address(advice.start.id),
        watched=_watched(visit, query, advice),
        must=_must(visit, advice.constraints),
        verdict=verdict(advice, say),
        because=because(advice, say, visit.say(", "), visit.say(". ")),
        notes=advice.notes,
        left_out_count=len(advice.left_out),
        heads=tuple(visit.say(head) for head in COLUMN_WORDS),
        rows=tuple(row for row, is_known in zip(rows, known, strict=True) if is_known),
        unmeasured=tuple(row for row, is_known in zip(rows, known, strict=True) if not is_known),
        left_out=tuple(
            LeftOutLine(reason, tuple(Choice(id_, build_address(id_), is_chosen=False) for id_ in ids))
            for reason, ids in left_out_by_reason(advice).items()
        ),
        find_out="\n".join(advice.unmeasured.commands(advice.start.id))
        if advice.decision is Decision.CANNOT_SAY
        else "",
        shown=_shown(visit, query, advice, shown) if shown else None,
    )


def _said(visit: Visit, said: Said) -> str:
    return visit.say(said.words, **said.values)


def _shown_of(advice: Advice, wanted: str) -> Candidate | None:
    """The candidate that is asked for, else the best, else the first that anything is known of."""
    asked = [one for one in advice.candidates if one.build.id == _id_of(wanted, advice)]
    known = [one for one in advice.candidates if one.answered]
    return next(iter([*asked, *known, *advice.candidates]), None)


def _id_of(wanted: str, advice: Advice) -> str:
    """Of a candidate that is named; empty where none is meant, because links of yesterday name what has left."""
    try:
        return find_build(wanted, {one.build.id: one.build for one in advice.candidates}).id if wanted else ""
    except UnknownBuild:
        return ""


def _watched(visit: Visit, query: UpgradePageQuery, advice: Advice) -> str:
    named = [*query.watch, *query.component, *query.package, query.severity]
    told = ", ".join(one for one in named if one)
    count = len(advice.watched)
    watched = visit.say(ISSUE_WORDS[count > 1], n=count)
    return f"{watched} ({told})" if told else watched


ISSUE_WORDS = ("1 issue", "{n} issues")


def _must(visit: Visit, constraints: Constraints) -> tuple[str, ...]:
    driver = visit.say("driver {version}", version=constraints.driver) if constraints.driver else ""
    python = f"Python {constraints.python}" if constraints.python else ""
    named = (*constraints.hardware, python, driver, *(pin.text for pin in constraints.pins))
    return tuple(one for one in named if one)


_FIGURES = (
    Prospect.FIXED,
    Prospect.STILL_AFFECTED,
    Prospect.NEWLY_BROKEN,
    Prospect.NEEDS_WORKAROUND,
    Prospect.UNKNOWN,
)


def _row(visit: Visit, query: UpgradePageQuery, one: Candidate, *, is_shown: bool) -> Row:
    address = f"{UPGRADE}{query.asking(to=one.build.id)}"
    anchors = [prospect.value if one.counts[prospect] else "" for prospect in _FIGURES]
    return Row(
        build=one.build.id,
        address=f"{address}#candidate",
        figures=tuple(
            Figure(visit.say(head), text, f"{address}#{anchor}" if anchor else "")
            for head, text, anchor in zip(COLUMN_WORDS, figures(one), [*anchors, ""], strict=True)
        ),
        rating=one.rating,
        word=visit.say(RATING_WORDS[one.rating]),
        why=_said(visit, one.why),
        is_shown=is_shown,
    )


_ORDER = (
    Prospect.NEWLY_BROKEN,
    Prospect.STILL_AFFECTED,
    Prospect.NEEDS_WORKAROUND,
    Prospect.UNKNOWN,
    Prospect.FIXED,
    Prospect.PASSES,
    Prospect.DOES_NOT_APPLY,
)
_FOLDED = frozenset({Prospect.PASSES, Prospect.DOES_NOT_APPLY})


def _shown(visit: Visit, query: UpgradePageQuery, advice: Advice, one: Candidate) -> Shown:
    own = query.model_copy(update={"to": one.build.id})
    missing = one.missing
    return Shown(
        build=one.build.id,
        address=build_address(one.build.id),
        compare_address=_compare(advice, one),
        is_best=one is advice.best,
        why=_said(visit, one.why),
        changes=changes(advice.start, one.build),
        requirements="\n".join(requirements(one.build)),
        index=markdown(_said(visit, index_of(one.build))),
        sections=tuple(_sections(visit, one)),
        steps=tuple(_steps(visit, one)),
        missing=visit.say(
            "about {minutes} min for {n} issues, one after another", minutes=missing.minutes, n=missing.count
        )
        if missing.count
        else "",
        commands="\n".join(missing.commands(one.build.id)),
        note=_note(visit, advice, one, own),
        note_address=f"{NOTE}{own.asking()}",
    )


def _compare(advice: Advice, one: Candidate) -> str:
    hardware = advice.hardware[0] if len(advice.hardware) == 1 else ""
    return compare_address(advice.start.id, one.build.id, hardware=hardware)


def _note(visit: Visit, advice: Advice, one: Candidate, query: UpgradePageQuery) -> str:
    page = f"{UPGRADE}{query.model_copy(update={'to': one.build.id}).asking()}"
    return migration_note(advice, one, base=visit.base, page=page, now=visit.now)


def _sections(visit: Visit, one: Candidate) -> Iterator[Section]:
    for prospect in _ORDER:
        items = one.of(prospect)
        if items:
            lines = tuple(_line(visit, item, one) for item in items)
            yield Section(prospect.value, visit.say(PROSPECT_WORDS[prospect]), lines, prospect in _FOLDED)


def _line(visit: Visit, item: Item, one: Candidate) -> ItemLine:
    issue, cell = item.issue, item.after
    is_told = item.prospect in {Prospect.NEWLY_BROKEN, Prospect.STILL_AFFECTED, Prospect.UNKNOWN}
    titles = {known.id: visit.in_language(known.title, known.title_zh) for known in issue.workarounds}
    return ItemLine(
        issue=issue.id,
        title=visit.in_language(issue.title, issue.title_zh),
        address=issue_address(issue.id, build=cell.build, hardware=cell.hardware),
        component=issue.component,
        severity=visit.say(issue.severity.value),
        is_silent=issue.silent,
        is_new=item.is_new,
        before=_mark(visit, item.before.issue, item.before.build, item.before.hardware, sign_of(item.before)),
        after=_mark(visit, cell.issue, cell.build, cell.hardware, sign_of(cell)),
        elsewhere=cell.build if cell.build != one.build.id and cell.measured_at else "",
        reason=visit.say(LUCK_WORDS[0]) if item.may_be_luck else cell.reason if is_told else "",
        cures=tuple(titles[id_] for id_ in item.cures),
    )


LUCK_WORDS = ("Was flaky, and passes there too few times to say that this is over.",)


def _mark(visit: Visit, issue: str, build: str, hardware: str, sign: Sign) -> Mark:
    return Mark(sign, visit.say(WORDS[sign]), cell_address(issue, build, hardware))


STEP_WORDS: Mapping[str, tuple[str, str]] = {
    "add": ("Workarounds to add", ""),
    "keep": ("Workarounds to keep", "They help on both builds; whoever has none in place needs them as well."),
    "remove": ("Workarounds no longer needed", "Their issues pass there without them."),
    "avoid": ("Workarounds to take out", ""),
}


def _steps(visit: Visit, one: Candidate) -> Iterable[StepGroup]:
    found = steps(one)
    groups = {"add": found.add, "keep": found.keep, "remove": found.remove, "avoid": found.avoid}
    for name, lines in groups.items():
        if lines:
            heading, meaning = STEP_WORDS[name]
            yield StepGroup(
                heading=visit.say(heading),
                meaning=visit.say(meaning) if meaning else "",
                lines=tuple(_step(visit, line) for line in lines),
                has_snippets=name in {"add", "keep"},
            )


def _step(visit: Visit, step: Step) -> StepLine:
    cell, workaround = step.item.after, step.workaround
    return StepLine(
        issue=step.item.issue.id,
        address=issue_address(step.item.issue.id, build=cell.build, hardware=cell.hardware),
        title=visit.in_language(workaround.title, workaround.title_zh),
        body=markdown(visit.in_language(workaround.body, workaround.body_zh)),
        why=step.why,
    )
