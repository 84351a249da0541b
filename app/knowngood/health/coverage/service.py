"""Coverage of the catalogue, and the gaps: for the page and its twin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue, inapplicable
from knowngood.domain.measuring.placement import Waiting, waiting_of
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import Column, Columns, choose_columns, fold, rows_of
from knowngood.domain.verdicts.verdict import Cell, Verdict
from knowngood.health.coverage.gaps import Gap, Pattern, doubtful, gaps_of, patterns_of
from knowngood.health.coverage.hygiene import MismatchKind, Remark, remarks_of
from knowngood.store.engine import Session
from knowngood.store.jobs.capacity import load_offers
from knowngood.store.jobs.job_queue import DISPATCHER
from knowngood.store.jobs.workers import load_queued
from knowngood.store.queries import load_lease


@dataclass(frozen=True)
class ClassCoverage:
    """One hardware class: its rows over `builds`, one by one, and over `columns`, where Pythons that agree are one.

    `standing` has the cell that stands for each column, by issue.
    """

    hardware: str
    builds: tuple[Build, ...]
    patterns: tuple[Pattern, ...]
    columns: tuple[Column, ...]
    standing: dict[str, tuple[Cell, ...]]

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
    classes = sorted({cell.hardware for cell in every})
    return Coverage(
        classes=tuple(_class(issues, hardware, known) for hardware in classes),
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


@dataclass(frozen=True)
class CellCount:
    """Of one hardware class: `measured` of the `applicable` cells have evidence, as in its `ClassCoverage`."""

    measured: int
    applicable: int


def cells_by_class(known: Known) -> dict[str, CellCount]:
    """Without what could be inferred, which takes most of making a coverage."""
    counts = ((hardware, _count(hardware, known)) for hardware in known.hardware)
    return {hardware: count for hardware, count in counts if count}


def _count(hardware: str, known: Known) -> CellCount | None:
    """None where the catalogue's issues have no cell on this class."""
    stored = {issue: dict(known.measured(issue, hardware)) for issue in known.issues}
    found = [cell for of in stored.values() for cell in of.values()]
    builds = choose_columns(known.builds.values(), {one.build for one in found if one.measured_at}, Columns.MEASURED)
    measured = not_run = 0
    for id_, issue in known.issues.items():
        for build in builds:
            cell = stored[id_].get(build)
            if cell is None or cell.verdict is Verdict.NOT_RUN:
                not_run += inapplicable(issue, build, hardware) is None
            else:
                measured += cell.verdict is not Verdict.NOT_APPLICABLE
    return CellCount(measured, measured + not_run) if found else None


def load_waiting(session: Session, now: datetime) -> tuple[Waiting, ...]:
    """The queued jobs that nobody can take, and why."""
    queued = load_queued(session)
    if not queued:
        return ()
    lease = load_lease(session, DISPATCHER)
    return waiting_of(queued, load_offers(session), lease.until if lease else None, now)


def _class(issues: Sequence[Issue], hardware: str, known: Known) -> ClassCoverage:
    measured = {cell.build for issue in issues for _, cell in known.measured(issue.id, hardware) if cell.measured_at}
    chosen = choose_columns(known.builds.values(), measured, Columns.MEASURED)
    patterns = patterns_of(issues, chosen, hardware, known)
    shown = [one.issue for one in patterns]
    columns = fold(shown, chosen, [hardware], known)
    rows = rows_of(shown, columns, [hardware], known)
    standing = {issue: row for (issue, _), row in rows.items()}
    return ClassCoverage(hardware, chosen, patterns, columns, standing)
