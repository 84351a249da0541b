"""`/compare`: two builds side by side; without two builds, the choice of them. `/compare.md`: the same as Markdown."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from itertools import pairwise
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.issue_selectors import SEVERITY_RANK
from knowngood.domain.verdicts.inference import own_reason
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import measured_line
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.vocabulary import SEVERITY
from knowngood.matrix.overview.selection import Words, one_class
from knowngood.move.compare.api import Narrowed, OfTwoBuilds, comparison_of
from knowngood.move.compare.comparison import PAIRING_WORDS, CompareRequest, Comparison, outcome
from knowngood.move.compare.renderers import HEADINGS, MEANINGS, comparison_markdown, notes_of
from knowngood.move.pair import Group, IssuePair
from knowngood.share.exports.extract import links_at
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


@router.get("/compare")
def compare(
    context: Context,
    narrowed: Narrowed,
    a: Words = "",
    b: Words = "",
    start: Annotated[Words, Query(alias="from")] = "",
    to: Words = "",
    sort: Sorting = Sorting.CHANGE,
) -> Response:
    """`from` and `to` are names of the two builds as well: `/upgrade` and releases call them so."""
    request = replace(narrowed, a=a or start, b=b or to)

    def load(session: Session) -> tuple[Known, str, Collection[str], Comparison | None]:
        known = context.known(session)
        hardware = one_class(request.hardware, known.hardware)
        compared = comparison_of(request, known, context.now) if request.a and request.b else None
        return known, hardware, load_measured_builds(session, hardware), compared

    return context.answer_in_turn(load, lambda loaded: _page(context, request, sort, *loaded))


@router.get("/compare.md")
def compare_as_markdown(context: Context, request: OfTwoBuilds) -> Response:
    return context.answer_in_turn(
        lambda session: comparison_of(request, context.known(session), context.now),
        lambda compared: context.text(comparison_markdown(compared, links_at(context.base)), MARKDOWN, "comparison.md"),
    )


def _page(
    context: RequestContext,
    request: CompareRequest,
    sort: Sorting,
    known: Known,
    hardware: str,
    measured: Collection[str],
    compared: Comparison | None,
) -> Response:
    """`compared` is None while two builds are still to be chosen. `measured` are ids of builds on the class. The page
    says of each build whether it was measured, with any of its Pythons: one may stand in for another.
    """
    newest_first = sorted(known.builds.values(), key=lambda build: build.build_id, reverse=True)
    tested = {build.build_id.apart_from_python for build in newest_first if build.id in measured}
    narrowing = {**request.narrowing, "hardware": hardware}
    values: dict[str, Any] = {
        "query": request,
        "hardware": hardware,
        "builds": {build.id: build.build_id.apart_from_python in tested for build in newest_first},
        "components": sorted({issue.component for issue in known.issues.values()}),
        "classes": [
            Choice(plain_name(class_), _address(request, sort, hardware=class_), class_ == hardware)
            for class_ in dict.fromkeys([*known.hardware, hardware])
        ],
        "pairing": PAIRING_WORDS,
        "json_address": f"{API}{compare_address(request.a, request.b, **narrowing)}" if compared else f"{API}/builds",
    }
    if compared is None:
        offered = _offered(request, narrowing, measured_line(tuple(reversed(newest_first)), measured))
        return context.page("compare.html", **values, offered=offered[: None if context.is_file else _OFFERED])
    before, after = compared.before.id, compared.after.id
    return context.page(
        "compare.html",
        compared,
        **values,
        sentence=context.render(outcome(compared)),
        sections=_sections(compared, sort),
        headings=HEADINGS,
        meanings=MEANINGS,
        explained=_EXPLAINED,
        own_reason=own_reason,
        notes=partial(notes, context),
        sortings=[
            Choice(context.say(words), _address(request, sorting), sorting is sort)
            for sorting, words in SORTING_WORDS.items()
        ],
        swapped_address=_address(replace(request, a=after, b=before), sort),
        markdown=comparison_markdown(compared, links_at(context.base)),
        markdown_address=compare_address(before, after, **narrowing).replace("/compare", "/compare.md", 1),
    )


def _address(request: CompareRequest, sort: Sorting, **changes: str) -> str:
    sorted_by = "" if sort is Sorting.CHANGE else sort.value
    return compare_address(request.a, request.b, **{**request.narrowing, "sort": sorted_by, **changes})


def _sections(compared: Comparison, sort: Sorting) -> Mapping[str, Sequence[IssuePair]]:
    """The groups in their order; in another order than that all pairs together."""
    if sort is Sorting.CHANGE:
        return {group.value: pairs for group, pairs in compared.groups.items()}
    ordered = sorted(compared.pairs, key=_KEYS[sort])
    return {"all": [pair for pair in ordered if pair.group is not Group.NOWHERE]}


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


def notes(context: RequestContext, pair: IssuePair, without: str = "") -> Iterator[str]:
    """Notes on a pair in the reader's language. `without` is the key of one that the page has elsewhere."""
    messages = notes_of(pair, partial(context.titled, pair.issue), context.what_is_left)
    return (context.write(note) for note in messages if note.key != without)


def _offered(request: CompareRequest, narrowing: Mapping[str, str], line: Sequence[Build]) -> list[Choice]:
    """Steps between neighbouring measured builds, newest first; with one build chosen, what it can be compared with."""
    if request.a or request.b:
        steps = [(request.a or build.id, request.b or build.id) for build in reversed(line)]
    else:
        steps = [(before.id, after.id) for before, after in reversed(list(pairwise(line)))]
    named = ((f"{plain_name(a)} → {plain_name(b)}".replace("torch ", ""), a, b) for a, b in steps if a != b)
    return [Choice(label, compare_address(a, b, **narrowing), is_chosen=False) for label, a, b in named]
