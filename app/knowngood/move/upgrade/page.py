"""`/upgrade`: which build to move to, for what a team watches. `/upgrade.md`: the note for the pull request.

An environment that is pasted is held by its request alone: it leads to the address of the build that it is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Response
from markupsafe import Markup
from pydantic import Field

from knowngood.domain.builds.build_names import find_build
from knowngood.domain.builds.platforms import LINUX
from knowngood.domain.errors import UnknownBuild
from knowngood.domain.verdicts.inference import own_reason
from knowngood.domain.verdicts.verdict import WorkaroundFinding
from knowngood.domain.vocabulary import StatusLabel
from knowngood.environments.service import NO_BUILD
from knowngood.gate.request import BadField
from knowngood.matrix.overview.selection import Words
from knowngood.move.compare.comparison import WorkaroundTurn
from knowngood.move.compare.page import MARKDOWN, Section, SidesLine, mark
from knowngood.move.compare.renderers import TURN_WORDS, notes_of
from knowngood.move.upgrade.candidates import WEIGHING_WORDS, Candidate, Item, Message, Rating, Tally
from knowngood.move.upgrade.constraints import Constraints
from knowngood.move.upgrade.migration_note import answer_note, migration_note
from knowngood.move.upgrade.ranking import ENOUGH, LEAST, RANKING_WORDS, UpgradeAdvice, UpgradeDecision
from knowngood.move.upgrade.request import (
    NO_PACKAGE,
    UnknownStart,
    gpus_of,
    packages_said,
    start_name,
    start_of,
)
from knowngood.move.upgrade.service import UpgradeQuery, advice_on
from knowngood.move.upgrade.wording import (
    COLUMN_WORDS,
    MEASURED_WORDS,
    RATING_WORDS,
    SECTION_WORDS,
    EnvironmentChange,
    WorkaroundStep,
    because,
    changes,
    index_of,
    left_out_by_reason,
    measured,
    requirements,
    sections,
    steps,
    told_of,
    verdict,
)
from knowngood.store.knowledge.model import Knowledge
from knowngood.web.errors import InvalidParameter
from knowngood.web.forms import Form
from knowngood.web.html.grid import Choice
from knowngood.web.html.markdown import markdown
from knowngood.web.request_context import Context, RequestContext, see_other
from knowngood.web.urls import API, build_address, compare_address, issue_address

router = APIRouter(include_in_schema=False)

UPGRADE = "/upgrade"
NOTE = "/upgrade.md"

_FIRST = 4  # rows in sight, the build one is on among them: the note stands under them, on the first screen


class UpgradePageQuery(UpgradeQuery):
    to: Annotated[Words, Field(description="The candidate that is told of; the best unless said")] = ""

    @property
    def is_constrained(self) -> bool:
        named = (self.python, self.cuda, self.driver, self.hardware, self.pin, self.severity, self.has)
        return any(named) or self.enough is not None


@dataclass(frozen=True)
class Figure:
    """One count of a candidate under the head of its column; it leads to its issues where there are any. `beside` is
    what is to be said of it in a few words.
    """

    head: str
    text: str
    address: str
    beside: str = ""


@dataclass(frozen=True)
class Segment:
    """A part of a candidate's bar: how many issues wide, and how many stand before it."""

    sign: StatusLabel
    start: int
    width: int


@dataclass(frozen=True)
class Row:
    """The build one is on, or a candidate. `address` shows it below."""

    build: str
    address: str
    bar: tuple[Segment, ...]
    figures: tuple[Figure, ...]
    rating: Rating
    word: str
    why: str
    is_shown: bool


@dataclass(frozen=True)
class ItemLine(SidesLine):
    """One watched issue. `reason` is what the evidence says where it gives no answer or nothing helps; `helps` is
    what was found of the first of the `workarounds`.
    """

    workarounds: tuple[str, ...]
    helps: WorkaroundFinding | None


@dataclass(frozen=True)
class StepLine:
    issue_title: str
    address: str
    title: str
    body: Markup
    why: str
    helps: WorkaroundFinding | None


@dataclass(frozen=True)
class StepGroup:
    """Workarounds to do one thing with. `has_snippets` shows their text too."""

    heading: str
    meaning: str
    lines: tuple[StepLine, ...]
    has_snippets: bool


@dataclass(frozen=True)
class Shown:
    """The candidate that is told of. `is_chosen`: it is recommended, or somebody asks for it by name; else nothing is
    said of how to go there, and `note` is empty.
    """

    build: str
    address: str
    compare_address: str
    is_best: bool
    is_chosen: bool
    why: str
    changes: tuple[EnvironmentChange, ...]
    requirements: str
    index: Markup
    sections: tuple[Section, ...]
    steps: tuple[StepGroup, ...]
    missing: str
    commands: str
    note: str
    note_address: str


@dataclass(frozen=True)
class Answer:
    """`rows` are the first to look at, `more` the other candidates of which anything is known, `unmeasured` the rest.
    `widest` is how many issues the longest bar has.
    """

    decision: UpgradeDecision
    start: str
    start_address: str
    watched: str
    must: tuple[str, ...]
    verdict: str
    because: str
    notes: tuple[str, ...]
    find_out: tuple[tuple[str, str], ...]
    heads: tuple[str, ...]
    widest: int
    rows: tuple[Row, ...]
    more: tuple[Row, ...]
    unmeasured: tuple[Row, ...]
    left_out: Mapping[str, Sequence[str]]
    left_out_count: int
    shown: Shown | None


@dataclass(frozen=True)
class Ways:
    """The questions beside this one that have a page where pages are files: from another build, on another class, about
    one component.
    """

    starts: tuple[Choice, ...]
    classes: tuple[Choice, ...]
    components: tuple[Choice, ...]


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
    weighing: str
    enough: int
    least: int
    environment: str
    json_address: str
    ways: Ways | None = None


@router.get(UPGRADE)
def upgrade(context: Context, query: Annotated[UpgradePageQuery, Query()]) -> Response:
    return context.answer_from_in_turn(lambda snapshot: _page(context, query, snapshot.knowledge))


@router.post(UPGRADE)
def upgrade_from_environment(context: Context, form: Form) -> Response:
    """Leads to the page of the build that the environment is; nothing of it is kept but, in the address, which of its
    packages some issue concerns.
    """
    knowledge = context.state.knowledge.now().knowledge
    content, python = form.get("environment", ""), form.get("python", "").strip()
    named = {name: form[name].strip() for name in ("watch", "component") if form.get(name, "").strip()}
    query = UpgradePageQuery.model_validate({"python": python, **{name: [text] for name, text in named.items()}})
    try:
        found = start_of("", content, python, knowledge)
    except BadField as error:
        return _refused(context, query, knowledge, context.say(NO_BUILD, why=error.message), (), content)
    if found.build is None:
        return _refused(context, query, knowledge, context.say(NO_BUILD, why=found.note), found.nearest, content)
    said = list(packages_said(found.packages, knowledge))
    has = said if found.is_whole or said != [NO_PACKAGE] else []
    platform, gpus = LINUX if found.platforms else "", list(gpus_of(found))
    asked = query.asking(start=start_name(found), python="", has=has, platform=platform, hardware=gpus)
    address = f"{UPGRADE}{asked}"
    return see_other(address)


@router.get(NOTE)
def note(context: Context, query: Annotated[UpgradePageQuery, Query()]) -> Response:
    return context.answer_from_in_turn(lambda snapshot: _as_note(context, query, snapshot.knowledge))


def _as_note(context: RequestContext, query: UpgradePageQuery, knowledge: Knowledge) -> Response:
    try:
        advice = advice_on(query.asked, knowledge, context.state)
    except BadField as error:
        raise InvalidParameter(error.message, error.field) from None
    shown = _chosen(advice, query.to)
    if shown is None:
        page = f"{UPGRADE}{query.asking()}"
        text, name = answer_note(advice, base=context.base, page=page, now=context.now), "upgrade.md"
    else:
        text, name = _note(context, advice, shown, query), f"upgrade-{shown.build.id}.md".replace("+", "-")
    return Response(text, media_type=MARKDOWN, headers=context.attached(name))


def _page(context: RequestContext, query: UpgradePageQuery, knowledge: Knowledge) -> Response:
    if not query.start.strip():
        return context.page("upgrade.html", upgrade_page(query, knowledge, ways=_ways(context, query, knowledge)))
    try:
        advice = advice_on(query.asked, knowledge, context.state)
    except UnknownStart as error:
        return _refused(context, query, knowledge, error.message, error.nearest)
    except BadField as error:
        return _refused(context, query, knowledge, f"{error.field}: {error.message}", ())
    page = upgrade_page(query, knowledge, answer=_answer(context, query, advice), ways=_ways(context, query, knowledge))
    return context.page("upgrade.html", page)


def _refused(
    context: RequestContext,
    query: UpgradePageQuery,
    knowledge: Knowledge,
    problem: str,
    nearest: Sequence[str],
    environment: str = "",
) -> Response:
    near = tuple(Choice(one, f"{UPGRADE}{query.asking(start=one)}", is_chosen=False) for one in nearest)
    page = upgrade_page(query, knowledge, problem=problem, nearest=near, environment=environment)
    return context.page("upgrade.html", page, HTTPStatus.UNPROCESSABLE_ENTITY)


def upgrade_page(
    query: UpgradePageQuery,
    knowledge: Knowledge,
    *,
    answer: Answer | None = None,
    problem: str = "",
    nearest: tuple[Choice, ...] = (),
    environment: str = "",
    ways: Ways | None = None,
) -> UpgradePage:
    """Everything templates/upgrade.html shows, as values."""
    known = knowledge.known
    newest_first = sorted(known.builds.values(), key=lambda build: build.build_id, reverse=True)
    pythons = {build.python for build in newest_first}
    return UpgradePage(
        query=query,
        answer=answer,
        problem=problem,
        nearest=nearest,
        builds=tuple(build.id for build in newest_first),
        lists=tuple(knowledge.lists),
        components=tuple(sorted({issue.component for issue in known.issues.values()}, key=str.casefold)),
        pythons=tuple(sorted(pythons, key=lambda python: [int(part) for part in python.split(".")])),
        classes=known.hardware,
        severities=("low", "medium", "high", "critical"),
        ranking=RANKING_WORDS,
        weighing=WEIGHING_WORDS,
        enough=round(ENOUGH * 100),
        least=round(LEAST * 100),
        environment=environment,
        json_address=f"{API}{UPGRADE}{query.asking(to='')}" if answer else f"{API}/builds",
        ways=ways,
    )


def _ways(context: RequestContext, query: UpgradePageQuery, knowledge: Knowledge) -> Ways | None:
    if not context.is_file:
        return None

    def choice(label: str, *, is_chosen: bool, **changes: object) -> Choice:
        return Choice(label, f"{UPGRADE}{query.asking(**changes)}", is_chosen)

    known = knowledge.known
    newest_first = sorted(known.builds.values(), key=lambda build: build.build_id, reverse=True)
    components = sorted({issue.component for issue in known.issues.values()}, key=str.casefold)
    return Ways(
        starts=tuple(context.reachable(choice(build.id, is_chosen=False, start=build.id) for build in newest_first)),
        classes=tuple(choice(one, is_chosen=one in query.hardware, hardware=[one]) for one in known.hardware),
        components=(
            choice(context.say("all"), is_chosen=not query.component, component=[]),
            *(choice(one, is_chosen=one in query.component, component=[one]) for one in components),
        ),
    )


def _answer(context: RequestContext, query: UpgradePageQuery, advice: UpgradeAdvice) -> Answer:
    chosen = _chosen(advice, query.to)
    shown = chosen or told_of(advice)
    known = [one for one in advice.candidates if one.answered_by]
    rows = tuple(_row(context, query, one, is_shown=one is shown) for one in (advice.base, *known))
    say = partial(_said, context)
    return Answer(
        decision=advice.decision,
        start=advice.start.id,
        start_address=build_address(advice.start.id),
        watched=_watched(context, query, advice),
        must=_must(context, advice.constraints),
        verdict=verdict(advice, say),
        because=because(advice, say, context.say(", "), context.say(". ")),
        notes=advice.notes,
        find_out=tuple((say(one.what), "\n".join(one.commands)) for one in advice.find_out),
        heads=tuple(context.say(head) for head in (*COLUMN_WORDS.values(), MEASURED_WORDS[0])),
        widest=max(sum(one.counts[tally] for tally in _SIGNS) for one in (advice.base, *known)),
        rows=rows[:_FIRST],
        more=rows[_FIRST:],
        unmeasured=tuple(
            _row(context, query, one, is_shown=one is shown) for one in advice.candidates if not one.answered_by
        ),
        left_out=left_out_by_reason(advice),
        left_out_count=len(advice.left_out),
        shown=_shown(context, query, advice, shown, is_chosen=shown is chosen) if shown else None,
    )


def _said(context: RequestContext, said: Message) -> str:
    return context.say(said.words, **said.values)


def _chosen(advice: UpgradeAdvice, wanted: str) -> Candidate | None:
    """The candidate that is asked for by name, else the one that is recommended."""
    asked = _id_of(wanted, advice)
    return next((one for one in advice.candidates if one.build.id == asked), advice.best)


def _id_of(wanted: str, advice: UpgradeAdvice) -> str:
    """Of a candidate that is named; empty where none is meant, because links of yesterday name what has left."""
    try:
        return find_build(wanted, {one.build.id: one.build for one in advice.candidates}).id if wanted else ""
    except UnknownBuild:
        return ""


def _watched(context: RequestContext, query: UpgradePageQuery, advice: UpgradeAdvice) -> str:
    named = [*query.watch, *query.component, *query.package, query.severity]
    told = ", ".join(one for one in named if one)
    count = len(advice.watched)
    watched = context.say(ISSUE_WORDS[count > 1], n=count)
    return f"{watched} ({told})" if told else watched


ISSUE_WORDS = ("1 issue", "{n} issues")


def _must(context: RequestContext, constraints: Constraints) -> tuple[str, ...]:
    driver = context.say("driver {version}", version=constraints.driver) if constraints.driver else ""
    python = f"Python {constraints.python}" if constraints.python else ""
    named = (*constraints.hardware, python, driver, *(pin.text for pin in constraints.pins))
    return tuple(one for one in named if one)


# Of these the figure is the number of issues in the section that it leads to.
_LISTED = frozenset({Tally.GAINED, Tally.LOST, Tally.NEW, Tally.NOT_KNOWN})
_SIGNS = {
    Tally.PASSES: StatusLabel.PASSES,
    Tally.NEEDS_WORKAROUND: StatusLabel.WORKAROUND,
    Tally.FAILS: StatusLabel.FAILS,
    Tally.NOT_KNOWN: StatusLabel.NOT_RUN,
}


def _bar(one: Candidate) -> Iterator[Segment]:
    start = 0
    for tally, sign in _SIGNS.items():
        if one.counts[tally]:
            yield Segment(sign, start, one.counts[tally])
        start += one.counts[tally]


def _row(context: RequestContext, query: UpgradePageQuery, one: Candidate, *, is_shown: bool) -> Row:
    is_here = one.rating is Rating.HERE
    address = f"{UPGRADE}{query.asking(to=one.build.id)}"
    is_told = not is_here and context.leads_to(address)
    figures = [_figure(context, one, tally, address if is_told else "") for tally in COLUMN_WORDS]
    since = context.say("{n} reported since", n=one.age.reported) if one.age else ""
    return Row(
        build=one.build.id,
        address=f"{address}#candidate" if is_told else build_address(one.build.id),
        bar=tuple(_bar(one)),
        figures=(*figures, Figure(context.say(MEASURED_WORDS[0]), _said(context, measured(one)), "", since)),
        rating=one.rating,
        word=context.say(RATING_WORDS[one.rating]),
        why=_said(context, one.why),
        is_shown=is_shown,
    )


def _figure(context: RequestContext, one: Candidate, tally: Tally, address: str) -> Figure:
    count, eased = one.counts[tally], one.counts[Tally.LOST_WITH_WORKAROUND]
    leads = f"{address}#{tally}" if address and count and tally in _LISTED else ""
    beside = context.say("{n} with a workaround", n=eased) if tally is Tally.LOST and eased else ""
    if tally is Tally.FAILS and one.counts[Tally.UNTRIED]:
        beside = context.say("{n} not tried", n=one.counts[Tally.UNTRIED])
    return Figure(context.say(COLUMN_WORDS[tally]), str(count), leads, beside)


_OPEN = frozenset({Tally.LOST, Tally.NOT_KNOWN_BEFORE})  # what nobody must miss


def _shown(
    context: RequestContext, query: UpgradePageQuery, advice: UpgradeAdvice, one: Candidate, *, is_chosen: bool
) -> Shown:
    own = query.model_copy(update={"to": one.build.id})
    missing = one.missing
    hardware = advice.hardware[0] if len(advice.hardware) == 1 else ""
    return Shown(
        build=one.build.id,
        address=build_address(one.build.id),
        compare_address=compare_address(advice.start.id, one.build.id, hardware=hardware),
        is_best=one is advice.best,
        is_chosen=is_chosen,
        why=_said(context, one.why),
        changes=changes(advice.start, one.build),
        requirements="\n".join(requirements(one.build, advice.constraints.packages)),
        index=markdown(_said(context, index_of(one.build))),
        sections=tuple(_sections(context, one)),
        steps=tuple(_steps(context, one)),
        missing=context.say(
            "about {minutes} min for {n} issues, one after another", minutes=missing.price.minutes, n=missing.count
        )
        if missing.count
        else "",
        commands="\n".join(missing.commands(one.build.id)),
        note=_note(context, advice, one, own) if is_chosen else "",
        note_address=f"{NOTE}{own.asking()}",
    )


def _note(context: RequestContext, advice: UpgradeAdvice, one: Candidate, query: UpgradePageQuery) -> str:
    page = f"{UPGRADE}{query.model_copy(update={'to': one.build.id}).asking()}"
    return migration_note(advice, one, base=context.base, page=page, now=context.now)


def _sections(context: RequestContext, one: Candidate) -> Iterator[Section]:
    for tally, items in sections(one).items():
        lines = tuple(_line(context, item) for item in items)
        yield Section(tally.value, context.say(SECTION_WORDS[tally]), "", lines, is_folded=tally not in _OPEN)


def _line(context: RequestContext, item: Item) -> ItemLine:
    issue, cell = item.issue, item.after
    is_explained = item.prospect.value in {Tally.FAILS, Tally.NOT_KNOWN}
    titles = {known.id: context.in_language(known.title, known.title_zh) for known in issue.workarounds}
    told = TURN_WORDS[WorkaroundTurn.NOW_NEEDED] if item.workarounds else ""  # `workarounds` name them
    notes = notes_of(item, partial(context.titled, issue), context.what_is_left)
    return ItemLine(
        issue=issue.id,
        title=context.title_of(issue),
        address=issue_address(issue.id, build=cell.build, hardware=cell.hardware),
        component=issue.component,
        severity=context.say(issue.severity.value),
        is_silent=item.is_silent,
        before=mark(context, item.before),
        after=mark(context, cell),
        notes=tuple(context.say(words, **values) for words, values in notes if words != told),
        reason=own_reason(cell) if is_explained else "",
        workarounds=tuple(titles[id_] for id_ in item.workarounds),
        helps=item.helps,
    )


STEP_WORDS: Mapping[str, tuple[str, str]] = {
    "add": ("Workarounds to add", ""),
    "keep": ("Workarounds to keep", "They help on both builds; whoever has none in place needs them as well."),
    "remove": ("Workarounds no longer needed", "Their issues pass there without them."),
    "avoid": ("Workarounds to take out", ""),
}


def _steps(context: RequestContext, one: Candidate) -> Iterable[StepGroup]:
    for name, lines in steps(one).items():
        if lines:
            heading, meaning = STEP_WORDS[name]
            yield StepGroup(
                heading=context.say(heading),
                meaning=context.say(meaning) if meaning else "",
                lines=tuple(_step(context, line) for line in lines),
                has_snippets=name in {"add", "keep"},
            )


def _step(context: RequestContext, step: WorkaroundStep) -> StepLine:
    cell, workaround = step.item.after, step.workaround
    return StepLine(
        issue_title=context.title_of(step.item.issue),
        address=issue_address(step.item.issue.id, build=cell.build, hardware=cell.hardware),
        title=context.in_language(workaround.title, workaround.title_zh),
        body=markdown(context.in_language(workaround.body, workaround.body_zh)),
        why=step.why,
        helps=step.helps,
    )
