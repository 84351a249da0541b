"""The matrix as values: which builds make its columns, every cell of a selection filled, and what they add up to.

Builds that differ in Python alone share a column. What programs read is not folded: there every build stands for
itself, and a wheel where one is asked about by a name without a Python.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache

from knowngood.domain.builds.build import DEFAULT_PYTHON, Build, BuildId
from knowngood.domain.grouping import grouped
from knowngood.domain.hardware_classes import VECTOR_ISA_CLASSES
from knowngood.domain.issue import CPU_PATH, Issue, Workaround
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.message import Message, clauses, joined
from knowngood.domain.verdicts.claims import named
from knowngood.domain.verdicts.history import is_release
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.status import is_untried, untried, working
from knowngood.domain.verdicts.verdict import CONCLUSIVE, FAILING, Cell, CellPlace, Verdict, stale_before, stays_fresh


class Columns(StrEnum):
    """Which builds stand as columns where none are named. Other Pythons come along where they were measured."""

    MEASURED = "measured"  # releases with any measured cell; all of them while nothing is measured
    MINORS = "minors"  # the newest patch of each minor release
    RELEASES = "releases"  # the plain line, and what was measured beside it with its own Triton
    ALL = "all"  # deliberate Triton mismatches too; never folded


@dataclass(frozen=True)
class Column:
    """A column of the matrix: builds that differ in Python alone. First the one that names it: the default Python,
    or another where only that was measured; then the lower ones. Where it is unfolded it has one build.
    """

    builds: tuple[Build, ...]

    @property
    def head(self) -> Build:
        """The build that names it."""
        return self.builds[0]

    @property
    def cell_build(self) -> Build:
        """The build of its cells; the wheel where the column has several builds."""
        return self.head if len(self.builds) == 1 else self.head.wheel


def choose_columns(builds: Iterable[Build], measured: Collection[str], columns: Columns) -> tuple[Build, ...]:
    """Builds in release order: those that name a column, and their other Pythons that are among `measured` (ids).

    A build off the line of releases earns its column by being measured, with whatever Python.
    """
    families = [_where_measured(family, measured) for family in families_of(tuple(builds))]
    return tuple(build for family in _chosen(families, measured, columns) for build in family.builds)


@lru_cache(maxsize=64)  # one view asks five times for the same builds, and versions are slow to compare
def families_of(builds: tuple[Build, ...]) -> tuple[Column, ...]:
    """All Pythons of one torch with one Triton together, in release order."""
    in_order = sorted(builds, key=lambda build: build.build_id)
    families = grouped(in_order, lambda build: build.build_id.apart_from_python)
    return tuple(
        Column(tuple(sorted(family, key=lambda build: build.python != DEFAULT_PYTHON))) for family in families.values()
    )


def _where_measured(family: Column, measured: Collection[str]) -> Column:
    """The family without other Pythons that nothing was measured with: their columns would be blank."""
    return Column((family.head, *(build for build in family.builds[1:] if build.id in measured)))


def _chosen(families: Sequence[Column], measured: Collection[str], columns: Columns) -> Sequence[Column]:
    if columns is Columns.ALL:
        return families
    known = {family.head.id for family in families if any(build.id in measured for build in family.builds)}
    releases = [
        family
        for family in families
        if is_release(family.head) or (family.head.id in known and not family.head.is_mismatched)
    ]
    if columns is Columns.RELEASES:
        return releases
    if columns is Columns.MEASURED:
        return [family for family in releases if family.head.id in known] or releases
    minors = grouped(releases, lambda family: family.head.minor).values()
    return [max(minor, key=lambda family: _rank(family.head)) for minor in minors]


def measured_line(builds: Sequence[Build], measured: Collection[str]) -> tuple[Build, ...]:
    """Releases on the default Python that were measured, with whatever Python: what one moves along."""
    known = {build.build_id.apart_from_python for build in builds if build.id in measured}
    chosen = choose_columns(builds, measured, Columns.RELEASES)
    return tuple(
        build for build in chosen if build.python == DEFAULT_PYTHON and build.build_id.apart_from_python in known
    )


def shown_builds(known: Known) -> tuple[Build, ...]:
    """Builds that have something to show, in release order: columns of the matrix, and others that were measured."""
    measured = {build for _, build, _ in known.cells}
    columns = choose_columns(known.builds.values(), measured, Columns.MEASURED)
    ids = {build.id for build in columns} | measured
    return tuple(sorted((known.builds[id_] for id_ in ids & known.builds.keys()), key=lambda build: build.build_id))


def _rank(build: Build) -> tuple[tuple[int, ...], bool]:
    """Newer patch first; of the same patch, the wheel of the default index."""
    return build.build_id.version.release, is_release(build)


def unfolded(builds: Iterable[Build]) -> tuple[Column, ...]:
    """A column for each build."""
    return tuple(Column((build,)) for build in builds)


def fold(builds: Iterable[Build], hardware: Collection[str], known: Known) -> tuple[Column, ...]:
    """The columns of a view: a release has one, whatever its Pythons say. Where one of them fails and another passes,
    the cell is that of the wheel, which says so.
    """
    return tuple(_led(family, hardware, known) for family in families_of(tuple(builds)))


def _led(family: Column, hardware: Collection[str], known: Known) -> Column:
    """Named by a build that was measured on these classes, if any was: what was measured is not shown as inferred."""
    lead = next((build for build in family.builds if known.is_measured(build, hardware)), family.head)
    return Column((lead, *(build for build in family.builds if build is not lead)))


def complete(
    issues: Sequence[Issue], builds: Sequence[Build], hardware: Sequence[str], known: Known
) -> dict[CellPlace, Cell]:
    """The claim about every cell of the selection: measured, inferred, not_applicable with its reason, or not_run.

    Keys come in the order hardware, issue, build.
    """
    return {
        (issue.id, build.id, class_): known.cell(issue, build, class_)
        for class_ in hardware
        for issue in issues
        for build in builds
    }


def rows_of(
    issues: Sequence[Issue], columns: Sequence[Column], hardware: Sequence[str], known: Known
) -> dict[tuple[str, str], tuple[Cell, ...]]:
    """By issue and hardware class, the cell that stands for each column: the claim about the build, or the wheel."""
    builds = [column.cell_build for column in columns]
    return {
        (issue.id, class_): tuple([known.cell(issue, build, class_) for build in builds])
        for class_ in hardware
        for issue in issues
    }


def concerns_cpu_path(cells: Collection[Cell]) -> bool:
    """Whether a row has no place on its hardware class because it is about what torch does on the CPU."""
    return all(cell.verdict is Verdict.NOT_APPLICABLE for cell in cells) and any(
        cell.reason == CPU_PATH for cell in cells
    )


@dataclass(frozen=True)
class MatrixTotals:
    """The totals of a selection: `measured` cells have an attempt that ran, `unsure` of them give no answer; others
    are `inferred`.
    """

    applicable: int
    measured: int
    inferred: int
    unsure: int
    stale: int
    newest: datetime | None


def stale_cells(cells: Iterable[Cell], builds: Mapping[str, Build], now: datetime) -> frozenset[CellPlace]:
    """Keys of the cells whose evidence is too old to lean on; `builds` holds the build of each."""
    limits = {id_: stale_before(build, now) for id_, build in builds.items()}
    return frozenset(
        cell.key for cell in cells if cell.measured_at is not None and cell.measured_at < limits[cell.build]
    )


def stale_after(cells: Iterable[Cell], builds: Mapping[str, Build]) -> datetime | None:
    """The moment after which one of them is stale (None: never); `builds` holds the build of each."""
    return min((cell.measured_at + stays_fresh(builds[cell.build]) for cell in cells if cell.measured_at), default=None)


def tally(cells: Iterable[Cell], stale: Collection[CellPlace]) -> MatrixTotals:
    """`stale` are the stale ones among `cells`."""
    cells = list(cells)
    counts = Counter(cell.verdict for cell in cells)
    applicable = len(cells) - counts[Verdict.NOT_APPLICABLE]
    inferred = sum(1 for cell in cells if cell.basis is not None)
    return MatrixTotals(
        applicable=applicable,
        measured=applicable - counts[Verdict.NOT_RUN] - inferred,
        inferred=inferred,
        unsure=counts[Verdict.INCONCLUSIVE],
        stale=len(stale),
        newest=max((cell.measured_at for cell in cells if cell.measured_at is not None), default=None),
    )


def total(tallies: Iterable[MatrixTotals]) -> MatrixTotals:
    """The totals of several selections, none of which shares a cell with another."""
    parts = list(tallies)
    return MatrixTotals(
        applicable=sum(part.applicable for part in parts),
        measured=sum(part.measured for part in parts),
        inferred=sum(part.inferred for part in parts),
        unsure=sum(part.unsure for part in parts),
        stale=sum(part.stale for part in parts),
        newest=max((part.newest for part in parts if part.newest is not None), default=None),
    )


def telling_class(cells: Iterable[Cell], measured: Sequence[str]) -> str:
    """Of the classes that it fails on, else of those measured, the CPU's, else the first: what a reader came for."""
    classes = sorted({cell.hardware for cell in cells if cell.verdict in FAILING}) or measured
    return CPU_CLASS if CPU_CLASS in classes or not classes else classes[0]


def telling_build(builds: Mapping[str, Build], cells: Iterable[Cell], hardware: str) -> Build | None:
    """The newest plain build it fails on; else the newest measured; else the newest there is (None: there is none)."""
    here = [cell for cell in cells if cell.hardware == hardware]
    failing = {cell.build for cell in here if cell.verdict in FAILING}
    pool = failing or {cell.build for cell in here} or set(builds)
    return max((builds[id_] for id_ in pool), key=_prominence, default=None)


def _prominence(build: Build) -> tuple[bool, BuildId, bool, BuildId]:
    """Releases before other wheels, newer ones before older, the default Python before its twins."""
    name = build.build_id
    return is_release(build), name.apart_from_python, build.python == DEFAULT_PYTHON, name


def helped_elsewhere(issue: Issue, cell: Cell, known: Known) -> tuple[Workaround, Build] | None:
    """A workaround without an answer on a cell without known help, and the newest build of the class on which it was
    measured to help: the same build with another Python before any other.
    """
    hardware = cell.basis.hardware if cell.basis else cell.hardware
    open_ = set(untried(cell)) if is_untried(cell) else set()
    helping = [other for _, other in known.measured(issue.id, hardware) if open_.intersection(working(other))]
    family = known.builds[cell.build].build_id.apart_from_python
    alike = [other for other in helping if known.builds[other.build].build_id.apart_from_python == family]
    build = telling_build(known.builds, alike or helping, hardware) if helping else None
    if build is None:
        return None
    helps = next(open_.intersection(working(other)) for other in helping if other.build == build.id)
    return next(workaround for workaround in issue.workarounds if workaround.id in helps), build


def isa_difference(issue: Issue, known: Known) -> Message | None:
    """How the ISAs that a row depends on differ, in a sentence: `avx2 fails and avx512 passes on 2.7.0`. None where no
    build has an answer with each.
    """
    of_isas = {
        isa: {build.id: cell.verdict for build, cell in known.measured(issue.id, class_) if cell.verdict in CONCLUSIVE}
        for class_, isa in VECTOR_ISA_CLASSES.items()
        if isa in issue.requires.vector_isas
    }
    builds = [known.builds[id_] for id_ in known.tested if of_isas and all(id_ in of for of in of_isas.values())]
    by_verdicts = grouped(
        sorted(builds, key=lambda build: build.build_id),
        lambda build: tuple(of[build.id] for of in of_isas.values()),
    )
    differing = [
        Message(
            "isas_differ",
            said=joined(
                "both",
                (
                    Message("isa_does", name=isa, clause=Message(f"it_{verdict}"))
                    for isa, verdict in zip(of_isas, verdicts, strict=True)
                ),
            ),
            names=named(alike),
        )
        for verdicts, alike in by_verdicts.items()
        if len(set(verdicts)) > 1
    ]
    if not builds:
        return None
    isas = joined("both", (Message("names", names=isa) for isa in of_isas))
    return clauses(differing or [Message("isas_agree", isas=isas, names=named(builds))])
