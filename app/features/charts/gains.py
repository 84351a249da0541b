"""Gains and losses from each measured release to the next, as a comparison of the two says."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from knowngood.app.dashboard.charts.releases import measured_releases
from knowngood.app.domain.builds.build import Build
from knowngood.app.domain.verdicts.known import Known
from knowngood.app.features.compare.comparison import Group, compare


@dataclass(frozen=True)
class Step:
    """From one release to the next. `counts` has every group of a comparison, with the zeros; of what is lost,
    `lost_with_workaround` have one that helps.
    """

    before: Build
    after: Build
    counts: Mapping[Group, int]
    lost_with_workaround: int

    @property
    def gained(self) -> int:
        return self.counts[Group.FIXED]

    @property
    def lost(self) -> int:
        return self.counts[Group.NEWLY_BROKEN]


def steps_between_releases(known: Known, hardware: str) -> tuple[Step, ...]:
    line = [column.head for column in measured_releases(known, [hardware])]
    return tuple(_step(known, before, after, hardware) for before, after in pairwise(line))


def _step(known: Known, before: Build, after: Build, hardware: str) -> Step:
    found = compare(known.issues.values(), before, after, hardware, known)
    lost = found.of(Group.NEWLY_BROKEN)
    return Step(
        before, after, {group: len(found.of(group)) for group in Group}, sum(1 for pair in lost if pair.has_workaround)
    )
