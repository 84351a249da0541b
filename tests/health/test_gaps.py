"""Patterns over the releases, and what of the catalogue is still open."""

from dataclasses import replace

import pytest

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Device, Issue, Requires, Variant
from knowngood.domain.message import english, quoted
from knowngood.domain.verdicts.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from knowngood.health.rules import Pattern, doubtful, gaps_of, patterns_of
from tests.domain.given_claims import known_of
from tests.make import HARDWARE, make_build, make_issue

BUILDS = [make_build(f"2.{minor}.0+cu124") for minor in (4, 5, 6)]
EVERY = {build.id: build for build in BUILDS}
ISSUE = make_issue(workarounds=("clone", "eager"))
TO_TRY = WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, quoted("not run yet"))


def stored(verdict: Verdict, build: Build = BUILDS[0], **workarounds: WorkaroundFinding) -> Cell:
    return Cell(ISSUE.id, build.id, HARDWARE, verdict, quoted("because"), workarounds=workarounds)


def patterns(issues: list[Issue], builds: list[Build], cells: list[Cell]) -> tuple[Pattern, ...]:
    return patterns_of(issues, builds, HARDWARE, known_of(cells, issues, EVERY))


def test_a_pattern_has_one_cell_per_build_and_counts_what_can_be_measured() -> None:
    issue = replace(ISSUE, requires=Requires(torch=">=2.5"))
    cells = [stored(Verdict.AFFECTED, BUILDS[1])]
    (pattern,) = patterns([issue], BUILDS, cells)
    assert pattern.pattern == (Verdict.NOT_APPLICABLE, Verdict.AFFECTED, Verdict.NOT_RUN)
    assert (pattern.applicable, pattern.measured, pattern.conclusive) == (2, 1, 1)
    assert english(pattern.history) == "fails on 2.5.0, the one measured"


def test_the_history_counts_builds_that_are_no_column() -> None:
    cells = [stored(Verdict.AFFECTED), stored(Verdict.NOT_AFFECTED, BUILDS[2])]
    (pattern,) = patterns([ISSUE], BUILDS[:1], cells)
    assert (len(pattern.pattern), english(pattern.history)) == (
        1,
        "fails up to 2.4.0, fixed after 2.4.0, by 2.6.0 (2.5.0 not run)",
    )


def test_a_measured_cell_without_an_answer_is_not_conclusive() -> None:
    (pattern,) = patterns([ISSUE], BUILDS, [stored(Verdict.INCONCLUSIVE)])
    assert (pattern.applicable, pattern.measured, pattern.conclusive) == (3, 1, 0)


def test_a_row_that_applies_to_no_build_of_this_hardware_is_left_out() -> None:
    gpu = make_issue("toy-gpu-1", requires=Requires(Device.CUDA))
    assert [one.issue for one in patterns([gpu, ISSUE], BUILDS, [])] == [ISSUE.id]


ABSENT = replace(TO_TRY, applies=False)
CURES = WorkaroundFinding(WorkaroundVerdict.EFFECTIVE)


@pytest.mark.parametrize(
    ("cell", "gaps"),
    [
        (stored(Verdict.AFFECTED, clone=TO_TRY, eager=CURES), ["clone"]),
        (stored(Verdict.AFFECTED, clone=TO_TRY, eager=TO_TRY), ["clone", "eager"]),
        (stored(Verdict.AFFECTED, clone=ABSENT, eager=CURES), []),
        (stored(Verdict.NOT_AFFECTED, clone=TO_TRY, eager=TO_TRY), []),
        (stored(Verdict.FLAKY, clone=TO_TRY, eager=TO_TRY), []),
    ],
    ids=["one", "two", "does not apply", "passes", "flaky"],
)
def test_a_workaround_is_missing_where_its_issue_is_seen_and_it_could_be_tried(cell: Cell, gaps: list[str]) -> None:
    assert [gap.workaround for gap in gaps_of(ISSUE, [cell])] == gaps


@pytest.mark.parametrize(
    ("untried", "gaps"),
    [(("big",), ["clone"]), (("wide",), []), ((), [])],
    ids=["not tried yet", "left out on purpose", "tried with all"],
)
def test_a_workaround_that_helps_in_part_is_open_where_a_variant_is_still_to_be_tried(
    untried: tuple[str, ...], gaps: list[str]
) -> None:
    variants = (
        Variant("small", ""),
        Variant("big", ""),
        Variant("wide", "", arms=("eager",), why_not="it is for eager"),
    )
    partly = WorkaroundFinding(WorkaroundVerdict.PARTIAL, helped=("small",), untried=untried)
    issue = replace(ISSUE, variants=variants)
    assert [gap.workaround for gap in gaps_of(issue, [stored(Verdict.AFFECTED, clone=partly, eager=CURES)])] == gaps


def test_doubtful_is_what_was_measured_and_does_not_say_whether_the_issue_is_there() -> None:
    cells = [stored(verdict) for verdict in Verdict]
    assert [cell.verdict for cell in doubtful(cells)] == [Verdict.DIFFERENT_FAILURE, Verdict.INCONCLUSIVE]
