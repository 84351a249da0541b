"""`/upgrade`: which build to move to, for what a team watches. `/upgrade.md`: the note for the pull request.

An environment that is pasted is held by its request alone: it leads to the address of the build that it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.build_names import find_build
from knowngood.domain.builds.platforms import LINUX
from knowngood.domain.errors import BadField, UnknownBuild
from knowngood.domain.verdicts.inference import own_reason
from knowngood.domain.verdicts.known import Known
from knowngood.environments.service import NO_BUILD
from knowngood.matrix.overview.selection import Words
from knowngood.move.compare.page import MARKDOWN, Line, Section, line_of
from knowngood.move.compare.renderers import TURN_WORDS
from knowngood.move.pair import IssuePair, WorkaroundTurn
from knowngood.move.upgrade.candidates import WEIGHING_WORDS, Candidate, Message, Tally
from knowngood.move.upgrade.migration_note import answer_note, migration_note
from knowngood.move.upgrade.ranking import ENOUGH, LEAST, RANKING_WORDS, UpgradeAdvice
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
from knowngood.web.request_context import Context, RequestContext, see_other
from knowngood.web.urls import API

router = APIRouter(include_in_schema=False)

UPGRADE = "/upgrade"
NOTE = "/upgrade.md"


class UpgradePageQuery(UpgradeQuery):
    to: Annotated[Words, Field(description="The candidate that is told of; the best unless said")] = ""

    @property
    def is_constrained(self) -> bool:
        named = (self.python, self.cuda, self.driver, self.hardware, self.pin, self.severity, self.has)
        return any(named) or self.enough is not None


@dataclass(frozen=True)
class Shown:
    """The candidate that is told of. `is_chosen`: it is recommended, or somebody asks for it by name; else nothing is
    said of how to go there, and `note` is empty.
    """

    candidate: Candidate
    is_chosen: bool
    changes: tuple[EnvironmentChange, ...]
    requirements: tuple[str, ...]
    index: Message
    sections: tuple[Section, ...]
    steps: Mapping[str, Sequence[WorkaroundStep]]
    note: str
    note_address: str


@dataclass(frozen=True)
class Answer:
    """Each of the `rows` is a build with how much of it is measured: the one that one is on, then the candidates of
    which anything is known; `unmeasured` are the others.
    """

    advice: UpgradeAdvice
    verdict: str
    because: str
    rows: tuple[tuple[Candidate, Message], ...]
    unmeasured: tuple[tuple[Candidate, Message], ...]
    left_out: Mapping[str, Sequence[str]]
    shown: Shown | None
    columns: Mapping[Tally, str]


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
    """`answer` is None where no build is named yet, or the question has a `problem`; `nearest` may have been meant.
    `builds` are those of the catalogue, the newest first.
    """

    query: UpgradePageQuery
    knowledge: Knowledge
    builds: tuple[Build, ...]
    answer: Answer | None = None
    problem: str = ""
    nearest: tuple[Choice, ...] = ()
    environment: str = ""
    ways: Ways | None = None
    ranking: tuple[str, ...] = RANKING_WORDS
    weighing: str = WEIGHING_WORDS
    enough: int = round(ENOUGH * 100)
    least: int = round(LEAST * 100)

    @property
    def pythons(self) -> list[str]:
        return sorted({one.python for one in self.builds}, key=lambda python: [int(part) for part in python.split(".")])

    @property
    def json_address(self) -> str:
        return f"{API}{UPGRADE}{self.query.asking(to='')}" if self.answer else f"{API}/builds"


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
    return see_other(f"{UPGRADE}{asked}")


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
    try:
        advice = advice_on(query.asked, knowledge, context.state) if query.start.strip() else None
    except UnknownStart as error:
        return _refused(context, query, knowledge, error.message, error.nearest)
    except BadField as error:
        return _refused(context, query, knowledge, f"{error.field}: {error.message}", ())
    builds = _newest_first(knowledge)
    answer = _answer(context, query, advice) if advice else None
    page = UpgradePage(query, knowledge, builds, answer, ways=_ways(context, query, knowledge.known, builds))
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
    page = UpgradePage(query, knowledge, _newest_first(knowledge), None, problem, near, environment)
    return context.page("upgrade.html", page, HTTPStatus.UNPROCESSABLE_ENTITY)


def _newest_first(knowledge: Knowledge) -> tuple[Build, ...]:
    return tuple(sorted(knowledge.known.builds.values(), key=lambda build: build.build_id, reverse=True))


def _ways(context: RequestContext, query: UpgradePageQuery, known: Known, builds: Sequence[Build]) -> Ways | None:
    if not context.is_file:
        return None

    def choice(label: str, *, is_chosen: bool, **changes: object) -> Choice:
        return Choice(label, f"{UPGRADE}{query.asking(**changes)}", is_chosen)

    components = sorted({issue.component for issue in known.issues.values()}, key=str.casefold)
    return Ways(
        starts=tuple(context.reachable(choice(build.id, is_chosen=False, start=build.id) for build in builds)),
        classes=tuple(choice(one, is_chosen=one in query.hardware, hardware=[one]) for one in known.hardware),
        components=(
            choice(context.say("all"), is_chosen=not query.component, component=[]),
            *(choice(one, is_chosen=one in query.component, component=[one]) for one in components),
        ),
    )


def _answer(context: RequestContext, query: UpgradePageQuery, advice: UpgradeAdvice) -> Answer:
    def say(message: Message) -> str:
        return context.say(message.words, **message.values)

    chosen = _chosen(advice, query.to)
    shown = chosen or told_of(advice)
    return Answer(
        advice=advice,
        verdict=verdict(advice, say),
        because=because(advice, say, context.say(", "), context.say(". ")),
        rows=tuple(
            (one, measured(one)) for one in (advice.base, *advice.candidates) if one.answered_by or one is advice.base
        ),
        unmeasured=tuple((one, measured(one)) for one in advice.candidates if not one.answered_by),
        left_out=left_out_by_reason(advice),
        shown=_shown(context, query, advice, shown, is_chosen=shown is chosen) if shown else None,
        columns=COLUMN_WORDS,
    )


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


_OPEN = frozenset({Tally.LOST, Tally.NOT_KNOWN_BEFORE})  # what nobody must miss


def _shown(
    context: RequestContext, query: UpgradePageQuery, advice: UpgradeAdvice, one: Candidate, *, is_chosen: bool
) -> Shown:
    return Shown(
        candidate=one,
        is_chosen=is_chosen,
        changes=changes(advice.start, one.build),
        requirements=requirements(one.build, advice.constraints.packages),
        index=index_of(one.build),
        sections=tuple(_sections(context, one)),
        steps=steps(one),
        note=_note(context, advice, one, query) if is_chosen else "",
        note_address=f"{NOTE}{query.asking(to=one.build.id)}",
    )


def _note(context: RequestContext, advice: UpgradeAdvice, one: Candidate, query: UpgradePageQuery) -> str:
    page = f"{UPGRADE}{query.asking(to=one.build.id)}"
    return migration_note(advice, one, base=context.base, page=page, now=context.now)


def _sections(context: RequestContext, one: Candidate) -> Iterator[Section]:
    for tally, items in sections(one).items():
        lines = tuple(_line(context, item) for item in items)
        yield Section(tally.value, context.say(SECTION_WORDS[tally]), "", lines, is_folded=tally not in _OPEN)


def _line(context: RequestContext, item: IssuePair) -> Line:
    is_explained = item.prospect.value in {Tally.FAILS, Tally.NOT_KNOWN}
    told = TURN_WORDS[WorkaroundTurn.NOW_NEEDED] if item.workarounds else ""  # the page names the workarounds
    return line_of(context, item, own_reason(item.after) if is_explained else "", told)
