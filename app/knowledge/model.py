"""All that an answer is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from knowngood.app.domain.verdicts.known import Known
from knowngood.app.domain.watch_list import WatchList


@dataclass(frozen=True)
class Knowledge:
    """The knowledge that an answer stands on. `tested` are the builds that have any cell; `lists` the watch lists by
    name.
    """

    known: Known
    tested: frozenset[str]
    lists: Mapping[str, WatchList] = field(default_factory=dict)
