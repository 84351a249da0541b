"""What is measured of the catalogue and what is open, read from the store: for the page and its twin."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.build import Build
from app.domain.coverage import Gap, Pattern, doubtful, gaps_of, patterns_of
from app.domain.fleet import Waiting, waiting_of
from app.domain.hygiene import Remark, Trouble, remarks_on
from app.domain.issue import Issue
from app.domain.known import Known
from app.domain.matrix import Column, Columns, choose_columns, fold, rows_of
from app.domain.verdict import Cell
from app.store.jobs import DISPATCHER
from app.store.known import load_known
from app.store.offers import load_offers
from app.store.reads import load_builds, load_cells, load_issues, load_lease
from app.store.session import Session
from app.store.workers import load_queued


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
    issues: dict[str, Issue]
    builds: dict[str, Build]
    gaps: tuple[Gap, ...]
    doubtful: tuple[Cell, ...]
    remarks: tuple[Remark, ...]

    def remarks_about(self, trouble: Trouble) -> tuple[Remark, ...]:
        return tuple(remark for remark in self.remarks if remark.trouble is trouble)


def load_coverage(session: Session, now: datetime) -> Coverage:
    issues = load_issues(session)
    builds = {build.id: build for build in load_builds(session)}
    known = load_known(session, now)
    cells = load_cells(session, issues=[issue.id for issue in issues], builds=builds)
    by_issue: dict[str, list[Cell]] = {}
    for cell in cells:
        by_issue.setdefault(cell.issue, []).append(cell)
    classes = sorted({cell.hardware for cell in cells})
    return Coverage(
        classes=tuple(_class(issues, hardware, known) for hardware in classes),
        issues={issue.id: issue for issue in issues},
        builds=builds,
        gaps=tuple(gap for issue in issues for gap in gaps_of(issue, by_issue.get(issue.id, ()))),
        doubtful=doubtful(cells),
        remarks=tuple(
            remark
            for issue in issues
            for remark in remarks_on(issue, [(builds[cell.build], cell) for cell in by_issue.get(issue.id, ())])
            if remark.trouble in {Trouble.CONTRADICTED, Trouble.NEVER_FAILED}
        ),
    )


def load_waiting(session: Session, now: datetime) -> tuple[Waiting, ...]:
    """What of the queue nobody can take, and why."""
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
