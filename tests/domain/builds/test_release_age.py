"""From when on a release can be judged by what was reported about it."""

from datetime import date, timedelta

import pytest

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.release_age import SETTLED_DAYS, SETTLED_REPORTS, ReleaseAge, age_of
from tests.make import make_build, make_issue

RELEASED = date(2026, 9, 2)
FIRST, PATCH = make_build("2.14.0", released=RELEASED), make_build("2.14.1", released=date(2026, 9, 30))


def age(build: Build, *, days: int, reported: int, builds: tuple[Build, ...] = (FIRST, PATCH)) -> ReleaseAge | None:
    later = [make_issue(f"later-{at}", reported_on=RELEASED + timedelta(days=1)) for at in range(reported)]
    others = [make_issue("same-day", reported_on=RELEASED), make_issue("undated")]
    return age_of(build, builds, [*later, *others], RELEASED + timedelta(days=days))


@pytest.mark.parametrize(
    ("days", "reported", "is_settled"),
    [(SETTLED_DAYS, SETTLED_REPORTS, True), (SETTLED_DAYS - 1, 500, False), (5000, SETTLED_REPORTS - 1, False)],
)
@pytest.mark.parametrize("build", [FIRST, PATCH])
def test_a_release_is_settled_from_both_eight_weeks_and_twenty_reports_on(
    build: Build, days: int, reported: int, *, is_settled: bool
) -> None:
    found = age(build, days=days, reported=reported)
    assert found is not None
    assert (found.minor, found.released, found.days, found.reported) == ("2.14", RELEASED, days, reported)
    assert found.settled is is_settled


def test_a_patch_does_not_make_a_release_young_again_and_another_release_does_not_count() -> None:
    other = make_build("2.13.0", released=date(2026, 7, 8))
    assert age(PATCH, days=60, reported=20, builds=(FIRST, PATCH, other)) == age(FIRST, days=60, reported=20)


def test_without_a_day_of_release_nothing_is_said() -> None:
    undated = make_build("2.14.1", released=None)
    assert age(undated, days=60, reported=20, builds=(undated,)) is None


def test_without_a_day_of_any_report_nothing_is_said() -> None:
    assert age_of(FIRST, (FIRST,), [make_issue("undated")], date(2027, 1, 1)) is None
