"""Coverage of the catalogue, and the gaps: for the page and its twin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from knowngood.app.domain.builds.build import Build
from knowngood.app.domain.issue import Issue
from knowngood.app.domain.measuring.placement import Waiting, waiting_of
from knowngood.app.domain.verdicts.known import Known
from knowngood.app.domain.verdicts.matrix import Column, Columns, choose_columns, fold, rows_of
from knowngood.app.domain.verdicts.verdict import Cell
from knowngood.app.features.coverage.gaps import Gap, Pattern, doubtful, gaps_of, patterns_of
from knowngood.app.features.coverage.hygiene import MismatchKind, Remark, remarks_of
from knowngood.app.store.engine import Session
from knowngood.app.store.jobs.capacity import load_offers
from knowngood.app.store.jobs.job_queue import DISPATCHER
from knowngood.app.store.jobs.workers import load_queued
from knowngood.app.store.queries import load_lease


@dataclass(frozen=True)
class ClassPatterns:
    """One hardware class: its rows over `builds`, one by one."""

    hardware: str
    builds: tuple[Build, ...]
    patterns: tuple[Pattern, ...]

    @property
    def applicable(self) -> int:
        return sum(one.applicable for one in self.patterns)

    @property
    def measured(self) -> int:
        return sum(one.measured for one in self.patterns)

    @property
    def conclusive(self) -> int:
        return sum(one.conclusive for one in self.patterns)


@dataclass(frozen=True)
class ClassCoverage(ClassPatterns):
    """The same over `columns`, where Pythons that agree are one; `standing` has the cell that stands for each column,
    by issue.
    """

    columns: tuple[Column, ...]
    standing: dict[str, tuple[Cell, ...]]


@dataclass(frozen=True)
class Coverage:
    """`remarks` are those on claims and on rows that never failed; hygiene has the rest."""

    classes: tuple[ClassCoverage, ...]
    issues: Mapping[str, Issue]
    builds: Mapping[str, Build]
    gaps: tuple[Gap, ...]
    doubtful: tuple[Cell, ...]
    remarks: tuple[Remark, ...]

    def remarks_about(self, trouble: MismatchKind) -> tuple[Remark, ...]:
        return tuple(remark for remark in self.remarks if remark.trouble is trouble)


def coverage_of(known: Known) -> Coverage:
    issues = [known.issues[id_] for id_ in sorted(known.issues)]
    cells = {
        issue.id: [cell for hardware in known.hardware for _, cell in known.measured(issue.id, hardware)]
        for issue in issues
    }
    every = [cell for of in cells.values() for cell in of]
    return Coverage(
        classes=tuple(_folded(one, known) for one in patterns_by_class(known)),
        issues=known.issues,
        builds=known.builds,
        gaps=tuple(gap for issue in issues for gap in gaps_of(issue, cells[issue.id])),
        doubtful=doubtful(every),
        remarks=tuple(
            remark
            for _, remark in remarks_of(known)
            if remark.trouble in {MismatchKind.CONTRADICTED, MismatchKind.NEVER_FAILED}
        ),
    )


def load_waiting(session: Session, now: datetime) -> tuple[Waiting, ...]:
    """The queued jobs that nobody can take, and why."""
    queued = load_queued(session)
    if not queued:
        return ()
    lease = load_lease(session, DISPATCHER)
    return waiting_of(queued, load_offers(session), lease.until if lease else None, now)


def patterns_by_class(known: Known) -> tuple[ClassPatterns, ...]:
    """Of each class of which the catalogue's issues have a cell."""
    issues = [known.issues[id_] for id_ in sorted(known.issues)]
    return tuple(
        _patterns(issues, hardware, known)
        for hardware in known.hardware
        if any(known.measured(issue.id, hardware) for issue in issues)
    )


def _patterns(issues: Sequence[Issue], hardware: str, known: Known) -> ClassPatterns:
    measured = {cell.build for issue in issues for _, cell in known.measured(issue.id, hardware) if cell.measured_at}
    chosen = choose_columns(known.builds.values(), measured, Columns.MEASURED)
    return ClassPatterns(hardware, chosen, patterns_of(issues, chosen, hardware, known))


def _folded(found: ClassPatterns, known: Known) -> ClassCoverage:
    shown, classes = [one.issue for one in found.patterns], [found.hardware]
    columns = fold(shown, found.builds, classes, known)
    standing = {issue: row for (issue, _), row in rows_of(shown, columns, classes, known).items()}
    return ClassCoverage(found.hardware, found.builds, found.patterns, columns, standing)
