"""The matrix and a run as a terminal shows them, and a run as a log does."""

import io

import pytest
from rich.console import Console

from app.domain.issue import environment_request
from app.domain.job import JobEnded, Provisioning
from app.domain.matrix import complete
from app.domain.plan import PlannedArm, PlannedJob
from app.domain.verdict import Cell, Verdict
from app.store.rows import JobRow, JobState
from app.terminal import RunProgress, print_matrix, to_do_in_words
from tests.make import HARDWARE, NOON, make_build, make_issue

PLAIN, TWIN, NEXT = make_build(), make_build(python="3.12"), make_build("2.7.0+cu126")
ISSUE = make_issue("toy-1")


def printed(*found: tuple[str, Verdict]) -> list[list[str]]:
    """The words of each line."""
    stored = [Cell(ISSUE.id, build, HARDWARE, verdict, "because", NOON) for build, verdict in found]
    builds = (PLAIN, TWIN, NEXT)
    out = io.StringIO()
    cells = complete([ISSUE], builds, [HARDWARE], stored)
    print_matrix(Console(file=out, width=120), [ISSUE], builds, HARDWARE, cells)
    return [line.split() for line in out.getvalue().splitlines()]


def test_pythons_share_a_column_where_they_agree() -> None:
    lines = printed((TWIN.id, Verdict.AFFECTED), (NEXT.id, Verdict.NOT_AFFECTED))
    assert lines[1:4] == [
        ["2.6.0", "2.7.0"],
        ["issue", "+cu124", "+cu126", "history"],
        ["toy-1", "✕", "✓", "fails", "up", "to", "2.6.0,", "fixed", "in", "(2.6.0,", "2.7.0]"],
    ]
    assert lines[-1] == ["✓", "passes", "✕", "fails"]


def test_pythons_that_disagree_have_a_column_each() -> None:
    lines = printed((PLAIN.id, Verdict.NOT_AFFECTED), (TWIN.id, Verdict.AFFECTED))
    assert lines[2:5] == [
        ["2.6.0", "+cu124", "2.7.0"],
        ["issue", "+cu124", "~py312", "+cu126", "history"],
        ["toy-1", "✓", "✕", "Pythons", "disagree", "on", "1", "release"],
    ]


def test_what_is_to_do_is_told_in_cells_arms_and_environments() -> None:
    arms = [PlannedArm(issue, arm, "default", 1, "") for issue in ("toy-1", "toy-2") for arm in ("control", "baseline")]
    request = environment_request(ISSUE, PLAIN)
    planned = [PlannedJob(PLAIN, HARDWARE, request, tuple(arms)), PlannedJob(NEXT, HARDWARE, request, (arms[0],))]
    assert to_do_in_words(planned) == "to do: 3 cells, 5 arms, 2 environments"
    assert to_do_in_words(planned[1:]) == "to do: 1 cell, 1 arm, 1 environment"


@pytest.mark.parametrize(
    ("is_terminal", "problem", "expected"),
    [
        (False, "", [f"{PLAIN.id}: done; 3 of 8 arms after 0 s"]),
        (False, "no such build", [f"{PLAIN.id}: no such build; 3 of 8 arms after 0 s"]),
        (True, "", []),
    ],
)
def test_a_log_has_a_line_for_each_job_that_ended(is_terminal: bool, problem: str, expected: list[str]) -> None:
    told = io.StringIO()
    job = JobRow("job-1", PLAIN.id, HARDWARE, JobState.LEASED, 1, 8, 3, None, None, "")
    with RunProgress(Console(file=told, force_terminal=is_terminal, width=200), [job]) as progress:
        progress.tell(Provisioning(job.id, 1, "sync", "", 0, 0))
        progress.tell(JobEnded(job.id, 1, problem))
    assert [line for line in told.getvalue().splitlines() if line.startswith(PLAIN.id)] == expected
