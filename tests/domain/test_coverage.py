"""Patterns over the releases, and what of the catalogue is still open."""

from dataclasses import replace

import pytest

from app.domain.build import Build
from app.domain.coverage import doubtful, gaps_of, patterns_of
from app.domain.issue import Device, Requires
from app.domain.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from tests.make import HARDWARE, make_build, make_issue

BUILDS = [make_build(f"2.{minor}.0+cu124") for minor in (4, 5, 6)]
EVERY = {build.id: build for build in BUILDS}
ISSUE = make_issue(workarounds=("clone", "eager"))
TO_TRY = WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, "not run yet")


def stored(verdict: Verdict, build: Build = BUILDS[0], **workarounds: WorkaroundFinding) -> Cell:
    return Cell(ISSUE.id, build.id, HARDWARE, verdict, "because", workarounds=workarounds)


def test_a_pattern_has_one_cell_per_build_and_counts_what_can_be_measured() -> None:
    issue = replace(ISSUE, requires=Requires(torch=">=2.5"))
    cells = [stored(Verdict.AFFECTED, BUILDS[1])]
    (pattern,) = patterns_of([issue], BUILDS, HARDWARE, cells, EVERY)
    assert [cell.verdict for cell in pattern.cells] == [Verdict.NOT_APPLICABLE, Verdict.AFFECTED, Verdict.NOT_RUN]
    assert (pattern.applicable, pattern.measured, pattern.conclusive) == (2, 1, 1)
    assert pattern.history.sentence == "fails on 2.5.0, the one measured"


def test_the_history_counts_builds_that_are_no_column() -> None:
    cells = [stored(Verdict.AFFECTED), stored(Verdict.NOT_AFFECTED, BUILDS[2])]
    (pattern,) = patterns_of([ISSUE], BUILDS[:1], HARDWARE, cells, EVERY)
    assert (len(pattern.cells), pattern.history.sentence) == (1, "fails up to 2.4.0, fixed in (2.4.0, 2.6.0]")


def test_a_measured_cell_without_an_answer_is_not_conclusive() -> None:
    (pattern,) = patterns_of([ISSUE], BUILDS, HARDWARE, [stored(Verdict.INCONCLUSIVE)], EVERY)
    assert (pattern.applicable, pattern.measured, pattern.conclusive) == (3, 1, 0)


def test_a_row_that_applies_to_no_build_of_this_hardware_is_left_out() -> None:
    gpu = make_issue("toy-gpu-1", requires=Requires(Device.CUDA))
    assert [one.issue.id for one in patterns_of([gpu, ISSUE], BUILDS, HARDWARE, [], EVERY)] == [ISSUE.id]


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


def test_doubtful_is_what_was_measured_and_does_not_say_whether_the_issue_is_there() -> None:
    cells = [stored(verdict) for verdict in Verdict]
    assert [cell.verdict for cell in doubtful(cells)] == [Verdict.DIFFERENT_FAILURE, Verdict.INCONCLUSIVE]
