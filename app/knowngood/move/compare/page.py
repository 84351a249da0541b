"""`/compare`: two builds side by side; without two builds, the choice of them. `/compare.md`: the same as Markdown."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
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
from knowngood.domain.vocabulary import SEVERITY
from knowngood.matrix.overview.selection import Words
from knowngood.move.compare.comparison import PAIRING_WORDS, Comparison, joined, phrases
from knowngood.move.compare.renderers import HEADINGS, MEANINGS, comparison_markdown, notes_of
from knowngood.move.compare.service import CompareOptions, CompareQuery, comparison_of, load_options
from knowngood.move.pair import Group, IssuePair
from knowngood.share.exports.service import links_at
from knowngood.store.engine import Session
from knowngood.store.queries import load_measured_builds
from knowngood.web.html.grid import Choice
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API, compare_address

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
class Line:
    """`notes` are sentences beside the verdicts; `reason` one of the evidence, where the line asks for it."""

    pair: IssuePair
    notes: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Section:
    """Lines with one heading. Folded ones are opened by whoever wants them."""

    id: str
    heading: str
    meaning: str
    lines: tuple[Line, ...]
    is_folded: bool


@dataclass(frozen=True)
class ComparePage:
    """`compared` is None where two builds are still to be chosen; `offered` are comparisons somebody may want then.
    `told` is what became of the issues. Of each of the `builds` it is said whether it was measured, with any of its
    Pythons: one may stand in for another.
    """

    query: ComparePageQuery
    options: CompareOptions
    compared: Comparison | None
    builds: Mapping[str, bool]
    classes: tuple[Choice, ...]
    json_address: str
    offered: tuple[Choice, ...] = ()
    told: str = ""
    sections: tuple[Section, ...] = ()
    sortings: tuple[Choice, ...] = ()
    swapped_address: str = ""
    markdown: str = ""
    markdown_address: str = ""
    pairing: str = PAIRING_WORDS


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
    page = ComparePage(
        query=query,
        options=room,
        compared=compared,
        builds=_builds(room.builds, measured),
        classes=tuple(
            Choice(one, _address(query, hardware=one), one == room.hardware)
            for one in dict.fromkeys([*room.classes, room.hardware])
        ),
        json_address=f"{API}/builds",
    )
    narrowing = {**query.said, "hardware": room.hardware}
    if compared is None:
        return replace(page, offered=_offered(room, measured, query)[: None if context.is_file else _OFFERED])
    before, after = compared.before.id, compared.after.id
    return replace(
        page,
        told=joined([context.say(words, n=n) for words, n in phrases(compared)], context.say(", ")),
        sections=_sections(context, query, compared),
        sortings=tuple(
            Choice(context.say(SORTING_WORDS[one]), _address(query.model_copy(update={"sort": one})), one is query.sort)
            for one in Sorting
        ),
        swapped_address=_address(query.model_copy(update={"a": after, "b": before})),
        markdown=comparison_markdown(compared, links_at(context.base)),
        markdown_address=compare_address(before, after, **narrowing).replace("/compare", "/compare.md", 1),
        json_address=f"{API}{compare_address(query.a, query.b, **narrowing)}",
    )


def _address(query: ComparePageQuery, **changes: str) -> str:
    said = {**query.said, "sort": "" if query.sort is Sorting.CHANGE else query.sort.value, **changes}
    return compare_address(query.a, query.b, **said)


_FOLDED = frozenset({Group.STILL_FAILS, Group.STILL_PASSES, Group.NOWHERE})


def _sections(context: RequestContext, query: ComparePageQuery, compared: Comparison) -> tuple[Section, ...]:
    """The groups in their order; in another order than that all pairs together."""
    if query.sort is not Sorting.CHANGE:
        ordered = sorted(compared.pairs, key=_KEYS[query.sort])
        lines = _lines(context, (pair for pair in ordered if pair.group is not Group.NOWHERE))
        return (Section("all", context.say("All issues"), "", lines, is_folded=False),)
    return tuple(
        Section(
            id=group.value,
            heading=context.say(HEADINGS[group]),
            meaning=context.say(MEANINGS[group]),
            lines=_lines(context, pairs),
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


def _lines(context: RequestContext, pairs: Iterable[IssuePair]) -> tuple[Line, ...]:
    return tuple(line_of(context, one, own_reason(one.after) if one.group in _EXPLAINED else "") for one in pairs)


def line_of(context: RequestContext, pair: IssuePair, reason: str, without: str = "") -> Line:
    """`without` are the words of a note that the page has elsewhere."""
    notes = notes_of(pair, partial(context.titled, pair.issue), context.what_is_left)
    return Line(pair, tuple(context.say(words, **values) for words, values in notes if words != without), reason)


def _builds(builds: Iterable[Build], measured: Collection[str]) -> dict[str, bool]:
    """Newest first."""
    newest_first = sorted(builds, key=lambda build: build.build_id, reverse=True)
    known = {build.build_id.apart_from_python for build in newest_first if build.id in measured}
    return {build.id: build.build_id.apart_from_python in known for build in newest_first}


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
