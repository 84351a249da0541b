"""The columns of charts: the measured releases of a hardware class, each with the cell that stands for it.

And the share of the issues that pass on each.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.history import releases_of
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import Column, rows_of
from knowngood.domain.verdicts.status import FAILING_PROSPECTS, Prospect, prospect_of
from knowngood.domain.verdicts.verdict import Cell
from knowngood.domain.vocabulary import PROSPECTS, StatusLabel

STACKED = (
    Prospect.PASSES,
    Prospect.AS_REPORTED,
    Prospect.NEEDS_WORKAROUND,
    Prospect.FAILS,
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
