"""Facets: conditions of the query language that narrow a view by one click, with how many issues each leaves."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from knowngood.domain.issue import Issue, Severity
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.domain.vocabulary import VERDICTS
from knowngood.query.evaluate import has_term, needs_cells, of_issues, term, with_term, without
from knowngood.query.parser import BadQuery, Query, written
from knowngood.web.html.i18n import Language, say

_STATUSES = (
    Verdict.AFFECTED,
    Verdict.NOT_AFFECTED,
    Verdict.DIFFERENT_FAILURE,
    Verdict.FLAKY,
    Verdict.BIGGER,
    Verdict.MORE_WORK,
    Verdict.SLOWER,
    Verdict.INCONCLUSIVE,
    Verdict.NOT_RUN,
)
_WORKAROUND_WORDS = {
    "effective": "works",
    "untried": "not verified",
    "partial": "in part",
    "not_found": "none found",
}
_REPORTED_WORDS = {"yes": "passes as reported"}
_SILENT_WORDS = {"yes": "wrong numbers, no error"}
_FACET_WORDS = {
    "severity": "severity",
    "status": "status",
    "cure": "workarounds",
    "reported": "variants",
    "silent": "silent",
    "component": "component",
}


@dataclass(frozen=True)
class FacetChip:
    """`query` is what the reader would have written. `count` is of the issues that are left there."""

    word: str
    query: str
    address: str
    count: int
    is_chosen: bool


def facets_of(
    query: Query,
    issues: Iterable[Issue],
    count: Callable[[Query], int],
    address_of: Callable[[str], str],
    language: Language,
) -> Mapping[str, Sequence[FacetChip]]:
    """The chips of each facet by its label. `issues` are all there are; `count` tells how many a query leaves. A chip
    that is chosen takes its condition away again; another one of its facet takes its place. What leaves nothing is not
    offered.
    """
    components = sorted({issue.component for issue in issues}, key=str.casefold)
    offered = (
        ("cure", _WORKAROUND_WORDS),
        ("silent", _SILENT_WORDS),
        ("severity", {severity.value: severity.value for severity in reversed(Severity)}),
        ("status", {verdict.value: VERDICTS[verdict].word for verdict in _STATUSES}),
        ("reported", _REPORTED_WORDS),
        ("component", {f"={name}": name for name in components}),
    )
    return {
        say(_FACET_WORDS[field], language): chips
        for field, words in offered
        if (chips := tuple(_chips(query, field, words, count, address_of, language)))
    }


def _chips(
    query: Query,
    field: str,
    words: dict[str, str],
    count: Callable[[Query], int],
    address_of: Callable[[str], str],
    language: Language,
) -> Iterable[FacetChip]:
    for value, word in words.items():
        try:
            atom = term(field, value)
        except BadQuery:  # a component's name may be longer than a query's value
            continue
        is_chosen = has_term(query, atom)
        narrowed = with_term(query, atom)
        left = count(narrowed)
        if left or is_chosen:
            text = written(without(query, field) if is_chosen else narrowed)
            label = word if field == "component" else say(word, language)
            yield FacetChip(label, text, address_of(text), left, is_chosen)


def counting(issues: Iterable[Issue], by_cells: Callable[[Query], int], *, is_plain: bool) -> Callable[[Query], int]:
    """Make the function that counts how many of the `issues` a query leaves. What asks for nothing but the issues
    themselves needs no cells; with `is_plain` nothing else narrows the view.
    """
    every = tuple(issues)

    def count(query: Query) -> int:
        if not is_plain or needs_cells(query):
            return by_cells(query)
        holds = of_issues(query)
        return sum(1 for issue in every if holds(issue))

    return count
