"""The cells of an issue as sections of its page, where pages are files and no cell has one of its own."""

from collections.abc import Collection
from typing import Any

from knowngood.domain.grouping import grouped
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import shown_builds
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import NOT_RUN, Cell
from knowngood.matrix.evidence.page import cell_page
from knowngood.matrix.evidence.service import CellEvidence
from knowngood.matrix.issues.workarounds import WorkaroundView
from knowngood.web.html.status_labels import bare_word
from knowngood.web.request_context import RequestContext

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
