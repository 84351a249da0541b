"""`/compare`: two builds side by side; without two builds, the choice of them. `/compare.md`: the same as Markdown."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import pairwise
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from knowngood.domain.builds.build import Build
from knowngood.domain.issue_selectors import SEVERITY_RANK
from knowngood.domain.verdicts.inference import own_reason
from knowngood.domain.verdicts.matrix import measured_line
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import Cell
from knowngood.domain.vocabulary import SEVERITY, STATUSES, StatusLabel
from knowngood.matrix.overview.selection import Words
from knowngood.move.compare.comparison import (
    PAIRING_WORDS,
    Comparison,
    Group,
    IssuePair,
    Transition,
    joined,
    phrases,
)
from knowngood.move.compare.renderers import HEADINGS, MEANINGS, comparison_markdown, notes_of
from knowngood.move.compare.service import CompareOptions, CompareQuery, comparison_of, load_options
from knowngood.share.exports.service import links_at
from knowngood.store.engine import Session
from knowngood.store.queries import load_measured_builds
from knowngood.web.html.grid import Choice
from knowngood.web.html.status_labels import said_runs
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API, build_address, cell_address, compare_address, issue_address

router = APIRouter(include_in_schema=False)

MARKDOWN = "text/markdown; charset=utf-8"
_OFFERED = 8


class Sorting(StrEnum):
    CHANGE = "change"
    ISSUE = "issue"
    COMPONENT = "component"
    SEVERITY = "severity"
    AFTER = "after"


SORTING_WORDS = {
    Sorting.CHANGE: "most severe change",
    Sorting.ISSUE: "issue",
    Sorting.COMPONENT: "component",
    Sorting.SEVERITY: "severity",
    Sorting.AFTER: "verdict afterwards",
}


class ComparePageQuery(CompareQuery):
    a: Words = ""
    b: Words = ""
    sort: Sorting = Sorting.CHANGE


@dataclass(frozen=True)
class Mark:
    """One side of a pair: a cell as it is shown. What it is inferred from is one of the notes."""

    sign: StatusLabel
    word: str
    address: str
    rests_on: str
    is_inferred: bool
    is_old: bool


@dataclass(frozen=True)
class SidesLine:
    """`notes` are sentences beside the verdicts; `reason` one of the evidence, where the line asks for it."""

    issue: str
    title: str
    address: str
    component: str
    severity: str
    is_silent: bool
    before: Mark
    after: Mark
    notes: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class PairLine(SidesLine):
    transition: Transition


@dataclass(frozen=True)
class Section:
    """Lines with one heading. Folded ones are opened by whoever wants them."""

    id: str
    heading: str
    meaning: str
    lines: tuple[SidesLine, ...]
    is_folded: bool


@dataclass(frozen=True)
class Option:
    """Measured is what was with any of its Pythons: one may stand in for another."""

    id: str
    is_measured: bool


@dataclass(frozen=True)
class Answer:
    """The answer on two builds. `whence` is where from and where to, `told` what became of the issues."""

    before: Choice
    after: Choice
    whence: str
    told: str
    is_blind: bool
    is_same: bool
    command: str
    sections: tuple[Section, ...]
    sortings: tuple[Choice, ...]
    swapped_address: str
    markdown: str
    markdown_address: str


@dataclass(frozen=True)
class ComparePage:
    """`answer` is None where two builds are still to be chosen; `offered` are comparisons somebody may want then."""

    query: ComparePageQuery
    hardware: str
    answer: Answer | None
    offered: tuple[Choice, ...]
    options: tuple[Option, ...]
    components: tuple[str, ...]
    classes: tuple[Choice, ...]
    pairing: str
    cleared_address: str
    json_address: str


@router.get("/compare")
def compare(context: Context, query: Annotated[ComparePageQuery, Query()]) -> Response:
    def load(session: Session) -> tuple[CompareOptions, Collection[str], Comparison | None]:
        room = load_options(session, query.hardware)
        measured = load_measured_builds(session, room.hardware)
        compared = comparison_of(context.known(session), room, query, context.now) if query.a and query.b else None
        return room, measured, compared

    return context.answer_in_turn(
        load, lambda found: context.page("compare.html", compare_page(context, query, *found))
    )


@router.get("/compare.md")
def compare_as_markdown(context: Context, query: Annotated[CompareQuery, Query()]) -> Response:
    return context.answer_in_turn(
        lambda session: comparison_of(
            context.known(session), load_options(session, query.hardware), query, context.now
        ),
        lambda compared: context.text(comparison_markdown(compared, links_at(context.base)), MARKDOWN, "comparison.md"),
    )


def compare_page(
    context: RequestContext,
    query: ComparePageQuery,
    room: CompareOptions,
    measured: Collection[str],
    compared: Comparison | None,
) -> ComparePage:
    """Everything templates/compare.html shows, as values. `measured` are ids of builds on the class of `room`."""
    answer = _answer(context, query, compared) if compared else None
    here = compare_address(query.a, query.b, **{**query.said, "hardware": room.hardware})
    return ComparePage(
        query=query,
        hardware=room.hardware,
        answer=answer,
        offered=() if answer else _offered(room, measured, query)[: None if context.is_file else _OFFERED],
        options=_options(room.builds, measured),
        components=tuple(sorted({issue.component for issue in room.issues}, key=str.casefold)),
        classes=tuple(
            Choice(one, _address(query, hardware=one), one == room.hardware)
            for one in dict.fromkeys([*room.classes, room.hardware])
        ),
        pairing=context.say(PAIRING_WORDS),
        cleared_address=compare_address(query.a, query.b, hardware=query.hardware),
        json_address=f"{API}{here}" if answer else f"{API}/builds",
    )


def _address(query: ComparePageQuery, **changes: str) -> str:
    said = {**query.said, "sort": "" if query.sort is Sorting.CHANGE else query.sort.value, **changes}
    return compare_address(query.a, query.b, **said)


def _answer(context: RequestContext, query: ComparePageQuery, compared: Comparison) -> Answer:
    before, after, hardware = compared.before.id, compared.after.id, compared.hardware
    told = [context.say(words, n=n) for words, n in phrases(compared)]
    markdown = comparison_markdown(compared, links_at(context.base))
    turned = query.model_copy(update={"a": after, "b": before})
    narrowed = compare_address(before, after, **{**query.said, "hardware": hardware})
    return Answer(
        before=Choice(before, build_address(before, hardware), is_chosen=False),
        after=Choice(after, build_address(after, hardware), is_chosen=False),
        whence=context.say("From {a} to {b} on {hardware}", a=before, b=after, hardware=hardware),
        told=joined(told, context.say(", ")),
        is_blind=compared.is_blind,
        is_same=before == after,
        command=f"knowngood run --builds {before},{after} --hardware {hardware}",
        sections=_sections(context, query, compared),
        sortings=tuple(
            Choice(context.say(SORTING_WORDS[one]), _address(query.model_copy(update={"sort": one})), one is query.sort)
            for one in Sorting
        ),
        swapped_address=_address(turned),
        markdown=markdown,
        markdown_address=narrowed.replace("/compare", "/compare.md", 1),
    )


_FOLDED = frozenset({Group.STILL_FAILS, Group.STILL_PASSES, Group.NOWHERE})


def _sections(context: RequestContext, query: ComparePageQuery, compared: Comparison) -> tuple[Section, ...]:
    """The groups in their order; in another order than that all pairs together."""
    if query.sort is not Sorting.CHANGE:
        ordered = sorted(compared.pairs, key=_KEYS[query.sort])
        lines = tuple(_line(context, pair) for pair in ordered if pair.group is not Group.NOWHERE)
        return (Section("all", context.say("All issues"), "", lines, is_folded=False),)
    return tuple(
        Section(
            id=group.value,
            heading=context.say(HEADINGS[group]),
            meaning=context.say(MEANINGS[group]),
            lines=tuple(_line(context, pair) for pair in pairs),
            is_folded=group in _FOLDED,
        )
        for group in Group
        if (pairs := compared.of(group))
    )


_KEYS: Mapping[Sorting, Callable[[IssuePair], Any]] = {
    Sorting.ISSUE: lambda pair: pair.issue.id,
    Sorting.COMPONENT: lambda pair: (pair.issue.component.casefold(), pair.issue.id),
    Sorting.SEVERITY: lambda pair: (-SEVERITY_RANK[pair.issue.severity], not pair.is_silent, pair.issue.id),
    Sorting.AFTER: lambda pair: (SEVERITY[status_of(pair.after)], pair.issue.id),
}

# Where the evidence has to speak: the other groups are told by their verdicts and by what became of workarounds.
_EXPLAINED = frozenset(
    {Group.NEWLY_BROKEN, Group.NEW, Group.FAILS_OTHERWISE, Group.NOT_KNOWN_NOW, Group.GONE, Group.NOWHERE}
)


def _line(context: RequestContext, pair: IssuePair) -> PairLine:
    issue = pair.issue
    return PairLine(
        issue=issue.id,
        title=context.title_of(issue),
        address=issue_address(issue.id, build=pair.after.build, hardware=pair.after.hardware),
        component=issue.component,
        severity=context.say(issue.severity.value),
        is_silent=pair.is_silent,
        before=mark(context, pair.before, is_old=pair.old[0]),
        after=mark(context, pair.after, is_old=pair.old[1]),
        transition=pair.transition,
        notes=tuple(
            _note(context, words, values)
            for words, values in notes_of(pair, partial(context.titled, pair.issue), context.what_is_left)
        ),
        reason=own_reason(pair.after) if pair.group in _EXPLAINED else "",
    )


def _note(context: RequestContext, words: str, values: Mapping[str, str]) -> str:
    return context.say(
        words, **{name: context.say(value) if name == "what" else value for name, value in values.items()}
    )


def mark(context: RequestContext, cell: Cell, *, is_old: bool = False) -> Mark:
    sign = status_of(cell)
    return Mark(
        sign=sign,
        word=context.say(STATUSES[sign].word),
        address=cell_address(*cell.key),
        rests_on=said_runs(cell.runs, context.language),
        is_inferred=cell.basis is not None,
        is_old=is_old,
    )


def _options(builds: Iterable[Build], measured: Collection[str]) -> tuple[Option, ...]:
    """Newest first."""
    newest_first = sorted(builds, key=lambda build: build.build_id, reverse=True)
    known = {build.build_id.apart_from_python for build in newest_first if build.id in measured}
    return tuple(Option(build.id, build.build_id.apart_from_python in known) for build in newest_first)


def _offered(room: CompareOptions, measured: Collection[str], query: ComparePageQuery) -> tuple[Choice, ...]:
    """Steps between neighbouring measured builds, newest first; with one build chosen, what it can be compared with."""
    line = measured_line(room.builds, measured)
    if query.a or query.b:
        steps = [(query.a or build.id, query.b or build.id) for build in reversed(line)]
    else:
        steps = [(before.id, after.id) for before, after in reversed(list(pairwise(line)))]
    return tuple(
        Choice(f"{a} → {b}", compare_address(a, b, **{**query.said, "hardware": room.hardware}), is_chosen=False)
        for a, b in steps
        if a != b
    )
