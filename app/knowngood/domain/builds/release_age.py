"""How long a release has been out, and how many issues were reported since: what may be concluded of it.

Nobody has reported yet what will be found in a young release, so that "none newly broken" is true of it and says
nothing. Of 33 past breaks ten were known a month after the release, and half of them after 267 days (threads read on
2026-11-26).
Source: docs/decisions/019-an-upgrade-is-recommended-on-what-passes.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from statistics import median_low

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue

SETTLED_DAYS = 8 * 7
SETTLED_REPORTS = 20


@dataclass(frozen=True)
class ReleaseAge:
    """Of a release with all its patches (`minor`, such as 2.14): `released` is the day of its first one, `days` how
    long ago that was, and `reported` how many issues of the catalogue were first reported later. At least half
    of upstream's linked threads were last read on `read` or before it (None: never); what came after is not counted.
    """

    minor: str
    released: date
    days: int
    reported: int
    read: date | None
    settled: bool


def age_of(build: Build, builds: Iterable[Build], issues: Iterable[Issue], today: date) -> ReleaseAge | None:
    """The age of a build's release; None where no day of the release is known, or no report of an issue has a known
    day.
    """
    out = [other.released for other in builds if other.released and other.minor == build.minor]
    known = list(issues)
    if not out or not any(issue.reported_on for issue in known):
        return None
    released = min(out)
    seen = [link.seen for issue in known for link in issue.links if link.seen]
    days, reported = (
        (today - released).days,
        sum(1 for issue in known if issue.reported_on and issue.reported_on > released),
    )
    settled = days >= SETTLED_DAYS and reported >= SETTLED_REPORTS
    return ReleaseAge(build.minor, released, days, reported, median_low(seen) if seen else None, settled)
