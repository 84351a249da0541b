"""The cells of an issue as sections of its page, where pages are files and no cell has one of its own."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from knowngood.domain.grouping import grouped
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import told_builds
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import NOT_RUN, Cell
from knowngood.domain.vocabulary import StatusLabel
from knowngood.matrix.evidence.cell_page import CellPage, cell_page
from knowngood.matrix.evidence.service import CellEvidence
from knowngood.matrix.issues.workarounds import WorkaroundView
from knowngood.web.html.status_labels import bare_word
from knowngood.web.request_context import RequestContext


@dataclass(frozen=True)
class Unmeasured:
    """Cells of which nothing was measured, by the same reason."""

    hardware: str
    sign: StatusLabel
    word: str
    reason: str
    builds: tuple[str, ...]


@dataclass(frozen=True)
class Inferred:
    """Cells that are inferred from one measured cell by one rule, to the same answer."""

    sign: StatusLabel
    word: str
    rule: str
    cells: tuple[CellPage, ...]


@dataclass(frozen=True)
class MeasuredCell:
    """`tried` are the workarounds of which something is known there, those of which the same is said together; of the
    others, `untried`, nothing can be said but how many they are.
    """

    page: CellPage
    tried: tuple[tuple[WorkaroundView, ...], ...]
    untried: int
    inferred: tuple[Inferred, ...]


@dataclass(frozen=True)
class CellSections:
    """All cells of an issue, newest builds first, one class after the other; an inferred one stands with the measured
    one that it rests on. `snippets` are workarounds whose text does not stand in the page yet.
    """

    measured: tuple[MeasuredCell, ...]
    unmeasured: tuple[Unmeasured, ...]
    snippets: tuple[WorkaroundView, ...]


def sections_of(context: RequestContext, issue: Issue, known: Known, shown: Collection[WorkaroundView]) -> CellSections:
    """`shown` are the workarounds whose text the page has."""
    newest_first = told_builds(known)[::-1]
    cells = [known.cell(issue, build, hardware) for hardware in known.classes_of(issue.id) for build in newest_first]
    pages = [_page(context, issue, known, cell) for cell in cells if cell.measured_at]
    inferred = grouped(
        (one for one in pages if one.evidence.ground), lambda one: one.evidence.ground and one.evidence.ground.key
    )
    named = {one.id for one in shown}
    texts = {view.id: view for one in pages for view in one.workarounds if view.id not in named}
    return CellSections(
        measured=tuple(
            _measured(one, inferred.get(one.evidence.cell.key, ())) for one in pages if not one.evidence.ground
        ),
        unmeasured=tuple(_unmeasured(context, [cell for cell in cells if not cell.measured_at])),
        snippets=tuple(texts[one.id] for one in issue.workarounds if one.id in texts),
    )


def _measured(page: CellPage, inferred: Iterable[CellPage]) -> MeasuredCell:
    tried = [one for one in page.workarounds if one.note != NOT_RUN]
    return MeasuredCell(page, tuple(_alike(tried)), len(page.workarounds) - len(tried), tuple(_inferred(inferred)))


def _alike(workarounds: Iterable[WorkaroundView]) -> Iterator[tuple[WorkaroundView, ...]]:
    said = grouped(workarounds, lambda one: (one.word, one.runs, one.is_decoy, one.variants, one.note))
    return map(tuple, said.values())


def _inferred(cells: Iterable[CellPage]) -> Iterator[Inferred]:
    for (sign, word, rule), alike in grouped(cells, lambda one: (one.sign, one.word, one.known)).items():
        yield Inferred(sign, word, rule, tuple(alike))


def _page(context: RequestContext, issue: Issue, known: Known, cell: Cell) -> CellPage:
    """The page that the cell has elsewhere, of what is known without an attempt at hand."""
    ground = known.cells[cell.issue, cell.basis.build, cell.basis.hardware] if cell.basis else None
    evidence = CellEvidence(issue, known.builds[cell.build], cell, (), (), None, ground, (), known)
    return cell_page(context, evidence, (), ())


def _unmeasured(context: RequestContext, cells: Iterable[Cell]) -> Iterable[Unmeasured]:
    alike = grouped(
        cells, lambda cell: (cell.hardware, status_of(cell), bare_word(cell, context.language), cell.reason)
    )
    for (hardware, sign, word, reason), found in alike.items():
        yield Unmeasured(hardware, sign, word, reason, tuple(cell.build for cell in found))
