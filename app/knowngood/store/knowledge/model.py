"""All that an answer is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from knowngood.domain.verdicts.known import Known
from knowngood.domain.watch_list import WatchList


@dataclass(frozen=True)
class Knowledge:
    """The knowledge that an answer stands on. `tested` are the builds that have any cell; `lists` the watch lists by
    name.
    """

    known: Known
    tested: frozenset[str]
    lists: Mapping[str, WatchList] = field(default_factory=dict)


@dataclass(frozen=True)
class Recorded:
    """The records beside cells: seconds by (issue, arm, variant), the mean of making an environment (None: never
    timed), and by issue the texts of a few failures.
    """

    durations: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    environment_s: float | None = None
    failures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
