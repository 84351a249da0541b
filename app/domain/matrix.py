"""The matrix as values: which builds make its columns, every cell of a selection filled, and what they add up to."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from app.domain.build import DEFAULT_PYTHON, Build
from app.domain.history import is_on_line
from app.domain.issue import Issue, unmet
from app.domain.verdict import Cell, Verdict, is_stale

CellKey = tuple[str, str, str]  # issue, build, hardware class


class Columns(StrEnum):
    """Which builds stand as columns where none are named."""

    MEASURED = "measured"  # releases with any measured cell; all of them while nothing is measured
    MINORS = "minors"  # the newest patch of each minor release
    RELEASES = "releases"  # the plain line, and what was measured beside it with its own Triton
    ALL = "all"  # deliberate Triton mismatches and other Pythons too


def choose_columns(builds: Iterable[Build], measured: Collection[str], columns: Columns) -> tuple[Build, ...]:
    """Builds in release order. A build off the plain line earns its column by being among `measured` (ids)."""
    ordered = sorted(builds, key=lambda build: build.build_id)
    if columns is Columns.ALL:
        return tuple(ordered)
    releases = [build for build in ordered if is_on_line(build) or (build.id in measured and _is_plain(build))]
    if columns is Columns.RELEASES:
        return tuple(releases)
    if columns is Columns.MEASURED:
        return tuple(build for build in releases if build.id in measured) or tuple(releases)
    newest: dict[str, Build] = {}
    for build in releases:
        best = newest.get(build.minor)
        if best is None or _rank(build) > _rank(best):
            newest[build.minor] = build
    return tuple(newest.values())


def _is_plain(build: Build) -> bool:
    return not build.is_mismatched and build.python == DEFAULT_PYTHON


def _rank(build: Build) -> tuple[tuple[int, ...], bool]:
    """Newer patch first; of the same patch, the wheel of the default index."""
    return build.build_id.version.release, is_on_line(build)


def complete(
    issues: Sequence[Issue], builds: Sequence[Build], hardware: Sequence[str], stored: Iterable[Cell]
) -> dict[CellKey, Cell]:
    """Every cell of the selection: stored ones as they are, the others not_applicable with their reason, or not_run.

    Keys come in the order hardware, issue, build.
    """
    known = {(cell.issue, cell.build, cell.hardware): cell for cell in stored}
    cells: dict[CellKey, Cell] = {}
    for class_ in hardware:
        for issue in issues:
            for build in builds:
                key = (issue.id, build.id, class_)
                cells[key] = known.get(key) or _unmeasured(issue, build, class_)
    return cells


def _unmeasured(issue: Issue, build: Build, hardware: str) -> Cell:
    absent = unmet(issue.requires, build, hardware)
    if absent:
        return Cell(issue.id, build.id, hardware, Verdict.NOT_APPLICABLE, absent)
    return Cell(issue.id, build.id, hardware, Verdict.NOT_RUN, "not run yet")


@dataclass(frozen=True)
class Tally:
    """What a selection adds up to: `measured` cells have an attempt that ran, `unsure` of them give no answer."""

    applicable: int
    measured: int
    unsure: int
    stale: int
    newest: datetime | None


def stale_cells(cells: Iterable[Cell], builds: Mapping[str, Build], now: datetime) -> frozenset[CellKey]:
    """Keys of the cells whose evidence is too old to lean on; `builds` holds the build of each."""
    return frozenset(
        (cell.issue, cell.build, cell.hardware)
        for cell in cells
        if cell.measured_at is not None and is_stale(cell, builds[cell.build], now)
    )


def tally(cells: Iterable[Cell], stale: Collection[CellKey]) -> Tally:
    """`stale` are the stale ones among `cells`."""
    cells = [cell for cell in cells if cell.verdict is not Verdict.NOT_APPLICABLE]
    measured = [cell for cell in cells if cell.verdict is not Verdict.NOT_RUN]
    return Tally(
        applicable=len(cells),
        measured=len(measured),
        unsure=sum(1 for cell in measured if cell.verdict is Verdict.INCONCLUSIVE),
        stale=len(stale),
        newest=max((cell.measured_at for cell in measured if cell.measured_at), default=None),
    )
