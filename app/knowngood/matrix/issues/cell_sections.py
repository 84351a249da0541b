"""The cells of an issue as sections of its page, where pages are files and no cell has one of its own."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from knowngood.domain.grouping import grouped
from knowngood.domain.issue import Issue
from knowngood.domain.message import Message
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import shown_builds
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import NOT_RUN, Cell
from knowngood.domain.vocabulary import StatusLabel
from knowngood.matrix.evidence.page import CellPage, cell_page
from knowngood.matrix.evidence.service import CellEvidence
from knowngood.matrix.issues.workarounds import WorkaroundView
from knowngood.web.html.status_labels import bare_word
from knowngood.web.request_context import RequestContext


@dataclass(frozen=True)
class MeasuredCell:
    """`tried` are the workarounds of which something is known there, those of which the same is said together; of the
    others, `untried`, nothing can be said but how many they are. `inferred` are the cells that are inferred from it, by
    sign, word and the rule.
    """

    page: CellPage
    tried: Collection[Sequence[WorkaroundView]]
    untried: int
    inferred: Mapping[tuple[StatusLabel, str, str], Sequence[CellPage]]


@dataclass(frozen=True)
class CellSections:
    """All cells of an issue, newest builds first, one class after the other; an inferred one stands with the measured
    one that it rests on. Of `unmeasured` ones those stand together that are on one class, with one sign and word, by
    the same reason. `snippets` are workarounds whose text does not stand in the page yet.
    """

    measured: tuple[MeasuredCell, ...]
    unmeasured: Mapping[tuple[str, StatusLabel, str, Message], Sequence[Cell]]
    snippets: tuple[WorkaroundView, ...]


def sections_of(context: RequestContext, issue: Issue, known: Known, shown: Collection[WorkaroundView]) -> CellSections:
    """`shown` are the workarounds whose text the page has."""
    newest_first = shown_builds(known)[::-1]
    cells = [known.cell(issue, build, hardware) for hardware in known.classes_of(issue.id) for build in newest_first]
    pages = [_page(context, issue, known, cell) for cell in cells if cell.measured_at]
    inferred = grouped(
        (page for page in pages if page.evidence.ground), lambda page: page.evidence.ground and page.evidence.ground.key
    )
    named = {page.id for page in shown}
    texts = {view.id: view for page in pages for view in page.workarounds if view.id not in named}
    return CellSections(
        measured=tuple(
            _measured(page, inferred.get(page.evidence.cell.key, ())) for page in pages if not page.evidence.ground
        ),
        unmeasured=grouped(
            (cell for cell in cells if not cell.measured_at),
            lambda cell: (cell.hardware, status_of(cell), bare_word(cell, context.language), cell.reason),
        ),
        snippets=tuple(texts[workaround.id] for workaround in issue.workarounds if workaround.id in texts),
    )


def _measured(page: CellPage, inferred: Iterable[CellPage]) -> MeasuredCell:
    tried = [workaround for workaround in page.workarounds if workaround.note != NOT_RUN]
    alike = grouped(
        tried,
        lambda workaround: (
            workaround.word,
            workaround.runs,
            workaround.is_decoy,
            workaround.variants,
            workaround.note,
        ),
    )
    by_answer = grouped(
        inferred,
        lambda inferred_page: (status_of(inferred_page.evidence.cell), inferred_page.word, inferred_page.known),
    )
    return MeasuredCell(page, alike.values(), len(page.workarounds) - len(tried), by_answer)


def _page(context: RequestContext, issue: Issue, known: Known, cell: Cell) -> CellPage:
    """The page that the cell has elsewhere, made from what is known without an attempt."""
    ground = known.cells[cell.issue, cell.basis.build, cell.basis.hardware] if cell.basis else None
    evidence = CellEvidence(issue, known.builds[cell.build], cell, (), (), None, ground, (), known)
    return cell_page(context, evidence, (), ())
