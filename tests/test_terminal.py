"""The matrix and a run as a terminal shows them, and a run as a log does."""

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from app.domain.build import Build
from app.domain.issue import Device, Issue, Requires, environment_request
from app.domain.job import JobEnded, Provisioning
from app.domain.known import Known
from app.domain.plan import PlannedArm, PlannedJob
from app.domain.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from app.store.rows import JobRow, JobState
from app.terminal import RunProgress, print_matrix, to_do_in_words
from tests.domain import given_claims as claims
from tests.domain.given_claims import BUILDS, ROW, WHEELS, known_of
from tests.make import HARDWARE, NOON, make_build, make_issue

PLAIN, TWIN, NEXT = make_build(), make_build(python="3.12"), make_build("2.7.0+cu126")
ISSUE = make_issue("toy-1")
AT_311, AT_312 = (BUILDS[WHEELS[1], python] for python in ("3.11", "3.12"))
LATER_311, LATER_312 = (BUILDS[WHEELS[2], python] for python in ("3.11", "3.12"))


def printed(*found: tuple[str, Verdict]) -> list[list[str]]:
    """The words of each line."""
    stored = [Cell(ISSUE.id, build, HARDWARE, verdict, "because", NOON) for build, verdict in found]
    builds = (PLAIN, TWIN, NEXT)
    out = io.StringIO()
    known = known_of(stored, [ISSUE], {build.id: build for build in builds})
    print_matrix(Console(file=out, width=120), [ISSUE], builds, HARDWARE, known)
    return [line.split() for line in out.getvalue().splitlines()]


def lines_of(issues: Sequence[Issue], builds: Sequence[Build], hardware: str, known: Known) -> list[str]:
    out = io.StringIO()
    print_matrix(Console(file=out, width=120), issues, builds, hardware, known)
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_pythons_share_a_column_where_they_agree() -> None:
    lines = printed((PLAIN.id, Verdict.AFFECTED), (TWIN.id, Verdict.AFFECTED), (NEXT.id, Verdict.NOT_AFFECTED))
    assert lines[1:4] == [
        ["2.6.0", "2.7.0"],
        ["issue", "+cu124", "+cu126", "history"],
        ["toy-1", "✕", "✓", "fails", "up", "to", "2.6.0,", "fixed", "in", "(2.6.0,", "2.7.0]"],
    ]
    assert lines[-1] == ["✓", "passes", "✕", "fails"]


def test_an_answer_of_another_python_alone_is_not_shown_as_that_of_the_default_one() -> None:
    lines = printed((TWIN.id, Verdict.AFFECTED), (NEXT.id, Verdict.NOT_AFFECTED))
    assert lines[1:4] == [["2.6.0"], ["+cu124", "2.7.0"], ["issue", "~py312", "+cu126", "history"]]


def test_pythons_that_disagree_have_a_column_each() -> None:
    lines = printed((PLAIN.id, Verdict.NOT_AFFECTED), (TWIN.id, Verdict.AFFECTED))
    assert lines[2:5] == [
        ["2.6.0", "+cu124", "2.7.0"],
        ["issue", "+cu124", "~py312", "+cu126", "history"],
        ["toy-1", "✓", "✕", "Pythons", "disagree", "on", "1", "release"],
    ]


def test_what_is_inferred_stands_in_parentheses_and_the_legend_says_why() -> None:
    halves = {"aot_eager": WorkaroundFinding(WorkaroundVerdict.PARTIAL)}
    measured = [claims.made(ROW.id, AT_311, "x", workarounds=halves), claims.made(ROW.id, LATER_311, "o")]
    lines = lines_of([ROW], [AT_312, LATER_312], HARDWARE, claims.store(measured))
    assert lines[4].startswith("toy-1 (✕½) (✓) ")
    assert lines[-1] == (
        "✓ passes ✕½ fails, workaround helps in part "
        "( ) inferred from another Python of the same wheel, or from the CPU"
    )


def test_issues_of_the_cpu_path_are_counted_on_a_gpu_and_not_said_to_be_impossible_there() -> None:
    old = make_issue("old-1", requires=Requires(device=Device.CUDA, torch="<2"))
    anywhere = claims.any_device()
    known = claims.store([claims.made(anywhere.id, AT_311, "o")], ROW, anywhere, old)
    lines = lines_of([ROW, anywhere, old], [AT_311], claims.GPU, known)
    assert [line for line in lines if line.startswith(("toy-1", "old-1"))] == []
    assert [line for line in lines if line.startswith("any-1 (✓)")]
    assert lines[-3:-1] == [
        "1 issue more concern the CPU path: see cpu-x86_64",
        "1 issue more do not apply on cuda-sm_90",
    ]
    assert lines_of([ROW], [AT_311], claims.GPU, known)[0] == "1 issue more concern the CPU path: see cpu-x86_64"


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
