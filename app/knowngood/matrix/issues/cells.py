"""The cells of an issue in its page: a table sorted by link, or, where pages are files and no cell has a page of its
own, a section for each.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from knowngood.domain.builds.build import parse_build_id
from knowngood.domain.grouping import grouped
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import shown_builds
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import NOT_RUN, Cell
from knowngood.domain.vocabulary import SEVERITY
from knowngood.matrix.evidence.page import cell_page
from knowngood.matrix.evidence.service import CellEvidence
from knowngood.matrix.issues.workarounds import WorkaroundView
from knowngood.web.errors import InvalidParameter
from knowngood.web.html.status_labels import bare_word
from knowngood.web.request_context import RequestContext

HEAD_WORDS = {
    "build": "Build",
    "hardware": "Hardware",
    "verdict": "Verdict",
    "failed": "Failed",
    "measured": "Measured",
}


def _share(cell: Cell) -> tuple[float, int]:
    """The share of baselines with an answer that showed the issue, over all variants, and how many have one."""
    n = sum(variant.n for variant in cell.variants)
    return sum(variant.k for variant in cell.variants) / n if n else -1, n


_KEYS: Mapping[str, Callable[[Cell], Any]] = {
    "build": lambda cell: parse_build_id(cell.build),
    "hardware": lambda cell: cell.hardware,
    "verdict": lambda cell: SEVERITY[status_of(cell)],
    "failed": _share,
    "measured": lambda cell: cell.measured_at.timestamp() if cell.measured_at else 0,
}
_GREATEST_FIRST = frozenset({"build", "failed", "measured"})  # by the first click


def sort_evidence(cells: Sequence[Cell], sort: str) -> Sequence[Cell]:
    """`sort` is a column's name, turned round by a `-` before it. Where it is empty: newest releases first, one
    hardware class after the other.

    Raises InvalidParameter for a column that there is not.
    """
    newest_first = sorted(cells, key=lambda cell: parse_build_id(cell.build), reverse=True)
    rows, name = sorted(newest_first, key=lambda cell: cell.hardware), sort.removeprefix("-")
    if not sort:
        return rows
    if name not in _KEYS:
        raise InvalidParameter(f'there is no column "{name[:40]}"; known: {", ".join(_KEYS)}', "sort")
    return sorted(rows, key=_KEYS[name], reverse=sort.startswith("-"))


def make_heads(
    context: RequestContext, sort: str, address_of: Callable[[str], str], *, has_classes: bool
) -> tuple[dict[str, Any], ...]:
    """`address_of` makes the address of the page with another `sort`; a second click turns a column round. There is no
    column of classes where there is only one class.
    """
    names = [name for name in HEAD_WORDS if has_classes or name != "hardware"]
    return tuple(_head(context, name, sort, address_of) for name in names)


def _head(context: RequestContext, name: str, sort: str, address_of: Callable[[str], str]) -> dict[str, Any]:
    """A column's head as a link. `order` is what `aria-sort` says, empty where another column sorts."""
    first = f"-{name}" if name in _GREATEST_FIRST else name
    order = "" if sort.removeprefix("-") != name else "descending" if sort.startswith("-") else "ascending"
    turned = name if sort.startswith("-") else f"-{name}"
    address = address_of(turned if order else first)
    return {
        "label": context.say(HEAD_WORDS[name]),
        "address": address,
        "order": order,
        "is_number": name == "failed",
    }


# The cells as sections.

_Page = dict[str, Any]  # of `cell_page`


def sections_of(
    context: RequestContext, issue: Issue, known: Known, shown: Collection[WorkaroundView]
) -> dict[str, Any]:
    """All cells of an issue, newest builds first, one class after the other; an inferred one stands with the measured
    one that it rests on. Of `unmeasured` ones those stand together that are on one class, with one sign and word, by
    the same reason. `snippets` are workarounds whose text does not stand in the page yet; `shown` are those whose text
    does.
    """
    newest_first = shown_builds(known)[::-1]
    cells = [known.cell(issue, build, hardware) for hardware in known.classes_of(issue.id) for build in newest_first]
    pages = [_page(context, issue, known, cell) for cell in cells if cell.measured_at]
    inferred = grouped((page for page in pages if page["evidence"].ground), lambda page: page["evidence"].ground.key)
    named = {workaround.id for workaround in shown}
    texts = {view.id: view for page in pages for view in page["workarounds"] if view.id not in named}
    return {
        "measured": [
            _measured(page, inferred.get(page["evidence"].cell.key, ()))
            for page in pages
            if not page["evidence"].ground
        ],
        "unmeasured": grouped(
            (cell for cell in cells if not cell.measured_at),
            lambda cell: (cell.hardware, status_of(cell), bare_word(cell, context.language), cell.reason),
        ),
        "snippets": [texts[workaround.id] for workaround in issue.workarounds if workaround.id in texts],
    }


def _measured(page: _Page, inferred: Collection[_Page]) -> dict[str, Any]:
    """`tried` are the workarounds of which something is known there, those of which the same is said together; of the
    others, `untried`, nothing can be said but how many they are. `inferred` are the cells that are inferred from it, by
    sign, word and the rule.
    """
    tried = [workaround for workaround in page["workarounds"] if workaround.note != NOT_RUN]
    alike = grouped(tried, lambda view: (view.word, view.runs, view.is_decoy, view.variants, view.note))
    return {
        "page": page,
        "tried": alike.values(),
        "untried": len(page["workarounds"]) - len(tried),
        "inferred": grouped(inferred, lambda page: (status_of(page["evidence"].cell), page["word"], page["known"])),
    }


def _page(context: RequestContext, issue: Issue, known: Known, cell: Cell) -> _Page:
    """The page that the cell has elsewhere, made from what is known without an attempt."""
    ground = known.cells[cell.issue, cell.basis.build, cell.basis.hardware] if cell.basis else None
    evidence = CellEvidence(issue, known.builds[cell.build], cell, (), (), None, ground, (), known)
    return cell_page(context, evidence, (), ())
