"""How many issues pass, fail and fail with a workaround on each release of a hardware class."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from knowngood.domain.builds.build import Build
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.status import FAILING_PROSPECTS, Prospect, prospect_of
from knowngood.matrix.charts.releases import cells_by_release, measured_releases


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
        failing = sum(self.counts[one] for one in FAILING_PROSPECTS)
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
            ReleaseTally(column.asked, _tally(prospect_of(cells[at]) for cells in rows.values()))
            for at, column in enumerate(columns)
        ),
    )


def _tally(prospects: Iterable[Prospect]) -> Mapping[Prospect, int]:
    found = Counter(prospects)
    return {prospect: found[prospect] for prospect in Prospect}
