"""A release that nobody could report much about yet is not preferred to one that is settled."""

from datetime import date, timedelta

import pytest

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.release_age import SETTLED_REPORTS
from knowngood.domain.issue import Severity
from knowngood.domain.message import english
from knowngood.move.upgrade.candidates import Rating, UpgradeQuestion
from knowngood.move.upgrade.ranking import UpgradeAdvice, advise
from knowngood.move.upgrade.reasons import UpgradeDecision
from knowngood.move.upgrade.renderers import upgrade_text
from knowngood.move.upgrade.wording import answer
from tests.domain import given_claims
from tests.make import NOON, make_build
from tests.move.upgrade.test_ranking import cell_of, issue_of

TODAY = NOON.date()
YOUNG = TODAY - timedelta(days=21)
HERE = make_build("2.5.1+cu124", released=date(2020, 1, 1))
SETTLED = make_build("2.6.0+cu124", released=date(2020, 6, 1))
NEW = make_build("2.7.1+cu126", released=YOUNG)


def ask(
    rows: dict[str, str], *, silent: str = "", severity: Severity = Severity.HIGH, new: Build = NEW
) -> UpgradeAdvice:
    """`rows` say per issue what it does on the three builds. As many others as it takes were reported since 2020."""
    builds = (HERE, SETTLED, new)
    cells = [
        cell_of(id_, build, sign) for id_, signs in rows.items() for sign, build in zip(signs, builds, strict=True)
    ]
    issues = [issue_of(id_, silent=id_ == silent, severity=severity, reported_on=date(2021, 1, 1)) for id_ in rows]
    others = [issue_of(f"other-{at}", reported_on=date(2021, 1, 1)) for at in range(SETTLED_REPORTS)]
    known = given_claims.known_of(cells, [*issues, *others], {build.id: build for build in builds})
    return advise(UpgradeQuestion(HERE, tuple(issues)), known)


def ratings(advice: UpgradeAdvice) -> dict[str, Rating]:
    return {one.build.torch: one.rating for one in advice.candidates}


def test_the_settled_one_is_recommended_though_the_new_one_gains_more() -> None:
    advice = ask({"a": "xoo", "b": "xxo"})
    assert ratings(advice) == {"2.7.1+cu126": Rating.TOO_NEW, "2.6.0+cu124": Rating.RECOMMENDED}
    assert advice.best
    assert advice.best.build == SETTLED
    told = " ".join(upgrade_text(advice).split())
    assert "reported since" in told
    assert "too new to judge" in told
    assert english(advice.candidates[0].why) == (
        "torch 2.7.1 (CUDA 12.6) gains 2, but is too new to judge (days since 2.7 came out: 21; "
        "issues reported since: 0; upstream was read on ?)."
    )


@pytest.mark.parametrize(
    ("silent", "severity", "best"),
    [
        pytest.param("b", Severity.HIGH, NEW, id="severe and silent: what is settled is worse"),
        pytest.param("b", Severity.MEDIUM, SETTLED, id="silent alone"),
        pytest.param("", Severity.CRITICAL, SETTLED, id="severe alone"),
        pytest.param("a", Severity.HIGH, SETTLED, id="what both have mended"),
    ],
)
def test_the_new_one_is_preferred_where_it_mends_what_is_severe_and_silent(
    silent: str, severity: Severity, best: Build
) -> None:
    advice = ask({"a": "xoo", "b": "xxo"}, silent=silent, severity=severity)
    assert advice.best
    assert advice.best.build == best
    told = english(answer(advice))
    assert told.startswith(f"Go to {best.in_words}{' if you need one of its fixes, else wait' if best is NEW else ''}.")
    assert ("Too new to judge (0 issues reported" in told) is (best is NEW)


def test_to_stay_on_a_settled_one_is_better_than_a_new_one_too() -> None:
    advice = ask({"a": "xxo"})
    assert (advice.decision, advice.best) == (UpgradeDecision.CANNOT_SAY, None)
    assert english(answer(advice)).startswith(
        "Cannot say yet. torch 2.7.1 (CUDA 12.6) gains 1, but is too new to judge"
    )


def test_a_release_of_which_nobody_knows_the_day_is_not_taken_for_an_old_one() -> None:
    advice = ask({"a": "xoo", "b": "xxo"}, new=make_build("2.7.1+cu126", released=None))
    assert advice.best
    assert advice.best.build == SETTLED
    assert "the day of its release is not known" in english(advice.candidates[0].why)


def told_from(start: Build, builds: tuple[Build, ...], rows: dict[str, str]) -> str:
    cells = [
        cell_of(id_, build, sign)
        for id_, signs in rows.items()
        for sign, build in zip(signs, builds, strict=True)
        if sign != " "
    ]
    issues = [issue_of(id_, reported_on=date(2021, 1, 1)) for id_ in rows]
    others = [issue_of(f"other-{at}", reported_on=date(2021, 1, 1)) for at in range(SETTLED_REPORTS)]
    known = given_claims.known_of(cells, [*issues, *others], {build.id: build for build in builds})
    return english(answer(advise(UpgradeQuestion(start, tuple(issues)), known)))


def test_from_a_build_that_is_hardly_measured_the_cleanest_settled_one_is_named() -> None:
    other = make_build("2.6.1+cu124", released=date(2020, 7, 1))
    told = told_from(HERE, (HERE, SETTLED, other, NEW), {"a": " xco", "b": " xoo", "c": " ooo"})
    assert (
        "What you gain is not known; the settled build that fails least is torch 2.6.1 (CUDA 12.4), with failures "
        "there: 0 without a workaround, 1 with one." in told
    )


def test_a_patch_that_is_measured_is_offered_in_the_place_of_one_that_is_not() -> None:
    patch = make_build("2.5.2+cu124", released=date(2020, 2, 1))
    assert "torch 2.5.2 (CUDA 12.4) is measured: name it if that is what you have." in told_from(
        HERE, (HERE, patch), {"a": " x", "b": " o"}
    )
    assert "name it if that is what you have" not in told_from(HERE, (HERE, SETTLED), {"a": " x", "b": " o"})
