"""The numbers behind charts. Their columns are the measured releases of a hardware class, each with the cell that
stands for it. On these the share of the issues that pass; and the lifespan of an issue: how it stands on each release,
and its history.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.identity_key import IdentityKeys
from knowngood.domain.issue import Issue
from knowngood.domain.message import Message
from knowngood.domain.verdicts.history import releases_of
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import Column, rows_of
from knowngood.domain.verdicts.status import FAILING_PROSPECTS, Prospect, prospect_of
from knowngood.domain.verdicts.verdict import CONCLUSIVE, Cell, Verdict
from knowngood.domain.vocabulary import PROSPECTS, StatusLabel
from knowngood.web.urls import cell_address

STACKED = (
    Prospect.PASSES,
    Prospect.AS_REPORTED,
    Prospect.NEEDS_WORKAROUND,
    Prospect.FAILS,
    Prospect.BIGGER,
    Prospect.MORE_WORK,
    Prospect.SLOWER,
    Prospect.NOT_KNOWN,
    Prospect.DOES_NOT_APPLY,
)
"""In the order in which bars stack them, and tables list them."""
SIGNS: Mapping[Prospect, StatusLabel] = {prospect: StatusLabel(PROSPECTS[prospect].label) for prospect in STACKED}
WORDS: Mapping[Prospect, str] = {prospect: PROSPECTS[prospect].word for prospect in STACKED}


def measured_releases(known: Known, hardware: Collection[str]) -> tuple[Column, ...]:
    """Every release with a result on one of the classes, oldest first. All of its Pythons share the column."""
    return tuple(
        Column(tuple(sorted(release, key=lambda build: build.python != DEFAULT_PYTHON)))
        for release in releases_of(known.builds.values())
        if any(known.is_measured(build, hardware) for build in release)
    )


def cells_by_release(
    issues: Iterable[Issue], columns: Sequence[Column], hardware: str, known: Known
) -> dict[str, tuple[Cell, ...]]:
    """By issue, the cell that stands for each column, as in the matrix."""
    rows = rows_of(tuple(issues), columns, [hardware], known)
    return {issue: cells for (issue, _), cells in rows.items()}


def short_labels(releases: Iterable[str]) -> tuple[str, ...]:
    """`2.9`, `.1`, `2.10`: the minor where it begins, and else the patch alone, so that each fits under a bar."""
    labels, before = list[str](), ""
    for release in releases:
        minor, _, patch = release.rpartition(".")
        labels.append(f".{patch}" if minor == before else minor)
        before = minor
    return tuple(labels)


@dataclass(frozen=True)
class ReleaseTally:
    """One release: how many issues stand how, the zeros too."""

    build: Build
    counts: Mapping[Prospect, int]

    @property
    def release(self) -> str:
        return self.build.build_id.release

    @property
    def answered(self) -> int:
        failing = sum(self.counts[prospect] for prospect in FAILING_PROSPECTS)
        return self.counts[Prospect.PASSES] + failing

    @property
    def rate(self) -> float | None:
        """The share of the issues with an answer that pass; None where none has one."""
        return self.counts[Prospect.PASSES] / self.answered if self.answered else None


@dataclass(frozen=True)
class PassRate:
    hardware: str
    releases: tuple[ReleaseTally, ...]


def pass_rate(known: Known, hardware: str) -> PassRate:
    columns = measured_releases(known, [hardware])
    rows = cells_by_release(known.issues.values(), columns, hardware, known)
    return PassRate(
        hardware,
        tuple(
            ReleaseTally(column.cell_build, _tally(prospect_of(cells[at]) for cells in rows.values()))
            for at, column in enumerate(columns)
        ),
    )


def _tally(prospects: Iterable[Prospect]) -> Mapping[Prospect, int]:
    counts = Counter(prospects)
    return {prospect: counts[prospect] for prospect in Prospect}


@dataclass(frozen=True)
class Segment:
    """One release. `build` is the very build that the cell is of, `url` the cell's address; `is_mixed` says that some
    Pythons or variants fail there and others pass, or that it fails now and then.
    """

    release: str
    build: str
    url: str
    prospect: Prospect
    is_mixed: bool
    is_inferred: bool

    @property
    def look(self) -> tuple[Prospect, bool, bool]:
        return self.prospect, self.is_mixed, self.is_inferred


@dataclass(frozen=True)
class Lifespan:
    issue: Issue
    hardware: str
    segments: tuple[Segment, ...]
    history: Message


def runs_of(segments: Iterable[Segment]) -> dict[int, tuple[Segment, ...]]:
    """Neighbouring releases that look alike, by the number of those before them."""
    runs: dict[int, tuple[Segment, ...]] = {}
    start = 0
    for _, alike in groupby(segments, key=lambda segment: segment.look):
        runs[start] = tuple(alike)
        start += len(runs[start])
    return runs


@dataclass(frozen=True)
class Lifespans:
    """Lifespans over the same releases; `builds` name these."""

    builds: tuple[Build, ...]
    rows: tuple[Lifespan, ...]

    def place_of(self, build: str) -> int | None:
        """The place of a build's column, with any Python; None where there is none."""
        family = build.removeprefix("torch-").partition("~py")[0]
        return next((at for at, other in enumerate(self.builds) if other.wheel.id == family), None)


def lifespans_of(issues: Iterable[Issue], known: Known, hardware: str) -> Lifespans:
    """The lifespans on one class, without the issues that exist on none of its releases."""
    columns, issues, lifespans = measured_releases(known, [hardware]), tuple(issues), list[Lifespan]()
    releases = tuple(column.head.build_id.release for column in columns)
    several = {at: column.builds for at, column in enumerate(columns) if len(column.builds) > 1}
    cells = cells_by_release(issues, columns, hardware, known)
    for issue in issues:
        beside = tuple([(at, known.cell(issue, build, hardware).verdict) for at in several for build in several[at]])
        segments = _segments(releases, IdentityKeys(cells[issue.id]), beside)
        if any(segment.prospect is not Prospect.DOES_NOT_APPLY for segment in segments):
            lifespans.append(Lifespan(issue, hardware, segments, told_history(issue, known, hardware)))
    return Lifespans(tuple(column.head for column in columns), tuple(lifespans))


@lru_cache(maxsize=4096)  # between two pages few rows change
def _segments(
    releases: tuple[str, ...], cells: IdentityKeys[Cell], beside: tuple[tuple[int, Verdict], ...]
) -> tuple[Segment, ...]:
    """`beside` are the verdicts of builds that share a column, each with its place."""
    return tuple(
        Segment(
            release=release,
            build=cell.build,
            url=cell_address(*cell.key),
            prospect=prospect_of(cell),
            is_mixed=_is_mixed(cell, (verdict for place, verdict in beside if place == at)),
            is_inferred=cell.basis is not None,
        )
        for at, (release, cell) in enumerate(zip(releases, cells.them, strict=True))
    )


def _is_mixed(cell: Cell, beside: Iterable[Verdict]) -> bool:
    conclusive = CONCLUSIVE & {*(variant.verdict for variant in cell.variants), *beside}
    return Verdict.FLAKY in conclusive or (
        Verdict.NOT_AFFECTED in conclusive and bool(conclusive - {Verdict.NOT_AFFECTED})
    )


def told_history(issue: Issue, known: Known, hardware: str) -> Message:
    """The history of an issue on a class, and how many workarounds are known to help there."""
    history, helping = known.history_sentence(issue, hardware), len(known.helping(issue.id, hardware))
    if not helping:
        return history
    help_ = Message("workaround_helps" if helping == 1 else "workarounds_help", n=helping)
    return Message("beside", first=history, rest=help_)
