"""The matrix and a run as a terminal shows them, and a run as a log does."""

import io
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from knowngood.cli import console
from knowngood.cli.console import RunProgress, print_sizes, to_do_in_words
from knowngood.cli.encoding import stand_in
from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Device, Issue, Requires, environment_request
from knowngood.domain.measuring.job import JobEnded, PlannedArm, Provisioning
from knowngood.domain.measuring.planning import PlannedJob
from knowngood.domain.message import quoted
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.outcome import Trouble, TroubleCode
from knowngood.domain.verdicts.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from knowngood.domain.vocabulary import STATUSES, StatusLabel
from knowngood.matrix.overview.table import print_matrix
from knowngood.serialization.marks import MARKS, in_text
from knowngood.share.exports.markdown import SILENT, STALE
from knowngood.store.records import JobRow, JobState
from knowngood_workers.provision.download_estimate import Estimate, Space
from tests.domain import given_claims as claims
from tests.domain.given_claims import BUILDS, ROW, WHEELS, known_of
from tests.fixtures.databases import NewStore
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.waiting import PATIENCE_S, eventually

PLAIN, TWIN, NEXT = make_build(), make_build(python="3.12"), make_build("2.7.0+cu126")
ISSUE = make_issue("toy-1")
AT_311, AT_312 = (BUILDS[WHEELS[1], python] for python in ("3.11", "3.12"))
LATER_311, LATER_312 = (BUILDS[WHEELS[2], python] for python in ("3.11", "3.12"))


def printed(*found: tuple[str, Verdict]) -> list[list[str]]:
    """The words of each line."""
    stored = [Cell(ISSUE.id, build, HARDWARE, verdict, quoted("because"), NOON) for build, verdict in found]
    builds = (PLAIN, TWIN, NEXT)
    out = io.StringIO()
    known = known_of(stored, [ISSUE], {build.id: build for build in builds})
    print_matrix(Console(file=out, width=120), [ISSUE], builds, HARDWARE, known)
    return [line.split() for line in out.getvalue().splitlines()]


def lines_of(issues: Sequence[Issue], builds: Sequence[Build], hardware: str, known: Known) -> list[str]:
    out = io.StringIO()
    print_matrix(Console(file=out, width=120), issues, builds, hardware, known)
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_pythons_share_a_column() -> None:
    lines = printed((PLAIN.id, Verdict.AFFECTED), (TWIN.id, Verdict.AFFECTED), (NEXT.id, Verdict.NOT_AFFECTED))
    assert lines[1:4] == [
        ["2.6.0", "2.7.0"],
        ["issue", "+cu124", "+cu126", "history"],
        ["toy-1", "✕", "✓", "fails", "up", "to", "2.6.0,", "fixed", "in", "2.7.0"],
    ]
    assert lines[-1] == ["✓", "passes", "✕", "fails,", "no", "workaround", "found"]


def test_an_answer_of_any_python_is_that_of_the_wheel() -> None:
    lines = printed((TWIN.id, Verdict.AFFECTED), (NEXT.id, Verdict.NOT_AFFECTED))
    assert lines[1:3] == [["2.6.0", "2.7.0"], ["issue", "+cu124", "+cu126", "history"]]
    assert lines[3][:3] == ["toy-1", "✕", "✓"]


def test_pythons_that_disagree_share_a_column_that_says_neither() -> None:
    lines = printed((PLAIN.id, Verdict.NOT_AFFECTED), (TWIN.id, Verdict.AFFECTED))
    assert lines[2:4] == [
        ["issue", "+cu124", "+cu126", "history"],
        ["toy-1", "?", "Pythons", "disagree", "on", "1", "release"],
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
    known = claims.carrying(claims.store([claims.made(anywhere.id, AT_311, "o")], ROW, anywhere, old))
    lines = lines_of([ROW, anywhere, old], [AT_311], claims.GPU, known)
    assert [line for line in lines if line.startswith(("toy-1", "old-1"))] == []
    assert [line for line in lines if line.startswith("any-1 (✓)")]
    assert lines[-3:-1] == [
        "1 more issue concerns the CPU path: see cpu-x86_64",
        "1 more issue does not apply on cuda-sm_90",
    ]
    assert lines_of([ROW], [AT_311], claims.GPU, known)[0] == "1 more issue concerns the CPU path: see cpu-x86_64"


def test_what_is_to_do_is_told_in_cells_arms_and_environments() -> None:
    arms = [PlannedArm(issue, arm, "default", 1, "") for issue in ("toy-1", "toy-2") for arm in ("control", "baseline")]
    planned = [
        PlannedJob(PLAIN, HARDWARE, environment_request(ISSUE, PLAIN), tuple(arms)),
        PlannedJob(NEXT, HARDWARE, environment_request(ISSUE, NEXT), (arms[0],)),
        PlannedJob(NEXT, "cuda-sm_90", environment_request(ISSUE, NEXT), (arms[0],)),
    ]
    assert to_do_in_words(planned) == "to do: 4 cells, 6 arms, 2 environments"
    assert to_do_in_words(planned[1:2]) == "to do: 1 cell, 1 arm, 1 environment"


GB = 1_000_000_000


def sizes(**told: Any) -> list[str]:
    out = io.StringIO()
    estimate = Estimate(**{"space": Space(51 * GB, 0, 60 * GB), **told})
    print_sizes(Console(file=out, width=80), estimate)
    return out.getvalue().splitlines()


def test_a_guess_at_sizes_is_called_one() -> None:
    assert sizes(download_bytes=2 * GB) == ["to download: 2.0 GB", "on disk:     about 3.7 GB more, 51.0 GB are free"]
    told = sizes(download_bytes=2 * GB, guessed_bytes=GB, unknown=("torch",), unresolved=2)
    assert (
        told[0]
        == "to download: about 3.0 GB, 1.0 GB of it a guess at 2 environments and 1 file that nobody here knows yet"
    )


@pytest.mark.parametrize(
    ("told", "words"),
    [
        pytest.param(
            {"download_bytes": 56 * GB},
            "this does not fit at once, 52.6 GB are missing: environments that",
            id="in turns",
        ),
        pytest.param(
            {"download_bytes": 30 * GB, "largest_bytes": 29 * GB},
            "this does not fit: the largest environment alone takes about 53.6 GB, and 51.0 GB are free",
            id="never",
        ),
        pytest.param(
            {"download_bytes": 9 * GB, "space": Space(51 * GB, 50 * GB, 60 * GB)},
            "environments may take 60.0 GB together (KNOWNGOOD_ENVS_LIMIT)",
            id="over the limit",
        ),
    ],
)
def test_what_does_not_fit_is_told_plainly(told: dict[str, Any], words: str) -> None:
    assert sizes(**told)[2].startswith(words)


def test_environments_that_the_same_thing_is_wrong_with_share_a_line() -> None:
    troubles = {
        "torch-2.6.0+cu126": Trouble(TroubleCode.INDEX_UNREACHABLE, "it cannot be reached: after 4 s"),
        "torch-2.7.1+cu126": Trouble(TroubleCode.INDEX_UNREACHABLE, "it cannot be reached: after 5 s"),
        "torch-2.6.0+cu124 with einops==9": Trouble(TroubleCode.NO_BUILD, "no such build with einops==9: Because"),
        "torch-2.7.1+cu126 with einops==9.1": Trouble(TroubleCode.NO_BUILD, "no such build with einops==9.1: Because"),
    }
    assert sizes(troubles=troubles)[2:] == [
        "torch-2.6.0+cu126 and 1 more cannot be made: it cannot be reached: after 4 s",
        "torch-2.6.0+cu124 with einops==9 and 1 more cannot be made: no such build with einops==9: Because",
    ]
    many = {
        f"torch-2.{n}.0": Trouble(TroubleCode.NO_BUILD, f"no such build with {chr(97 + n)}: Because") for n in range(12)
    }
    assert sizes(troubles=many)[-1] == "and 2 other reasons (--json has them all)"


@pytest.mark.parametrize(
    ("is_terminal", "problem", "expected"),
    [
        (False, "", [f"{PLAIN.id}: environment, sync", f"{PLAIN.id}: done; 3 of 8 arms after 0 s"]),
        (
            False,
            "no such build",
            [f"{PLAIN.id}: environment, sync", f"{PLAIN.id}: no such build; 3 of 8 arms after 0 s"],
        ),
        (True, "", []),
    ],
)
def test_a_log_has_a_line_for_each_stage_of_a_job(is_terminal: bool, problem: str, expected: list[str]) -> None:
    told = io.StringIO()
    job = JobRow("job-1", PLAIN.id, HARDWARE, JobState.LEASED, 1, 8, 3, None, None, "")
    with RunProgress(Console(file=told, force_terminal=is_terminal, width=200), [job]) as progress:
        progress.tell(Provisioning(job.id, 1, "sync", "", 0, 0))
        progress.tell(Provisioning(job.id, 1, "sync", "torch", 7, 9))
        progress.tell(JobEnded(job.id, 1, problem))
    assert [line for line in told.getvalue().splitlines() if line.startswith(PLAIN.id)] == expected


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_time_left_is_the_one_that_is_handed_in(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a log once a minute, shortened here."""
    monkeypatch.setattr(console, "_TICK_S", 0.01)
    told, asked = io.StringIO(), threading.Event()
    job = JobRow("job-1", PLAIN.id, HARDWARE, JobState.LEASED, 1, 8, 3, None, None, "")

    def left() -> float:
        asked.set()
        return 3120.0

    with RunProgress(Console(file=told, force_terminal=is_terminal, width=200), [job], left):
        assert asked.wait(PATIENCE_S)
        assert eventually(lambda: "about 52 min left" in told.getvalue())


# -- terminals that lack our signs -------------------------------------------------------------------------------------

TELLS = r"""
import sys
from knowngood.cli.encoding import write_what_can_be_read
from knowngood.domain.vocabulary import STATUSES
from knowngood.serialization.marks import MARKS
write_what_can_be_read()
signs = (*(mark.sign for mark in MARKS.values()), STATUSES["cure"].symbol, STATUSES["partial"].symbol)
print(" ".join(signs), "\N{HORIZONTAL ELLIPSIS}", "\udc80", "\u6d4b")
print("\N{MULTIPLICATION X}", file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("encoding", "written"),
    [
        ("ascii", "+ M @ S x ! ~ ? . 0  x' x- . ? ?"),
        ("latin-1", "+ M @ S x ! ~ ? \xb7 0  x' x\xbd . ? ?"),
        ("utf-8", "✓ ↑ ↻ ◷ ✕ ≠ ~ ? · ⊘  ✕' ✕½ … ? 测"),
    ],
)
def test_a_sign_that_a_terminal_lacks_is_written_as_one_it_has(encoding: str, written: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", TELLS], capture_output=True, env=environment, check=True)
    assert done.stdout.decode(encoding).strip() == written
    assert done.stderr.decode(encoding).strip() == ("✕" if encoding == "utf-8" else "x")


def test_no_two_signs_have_the_same_stand_in() -> None:
    marks = (*MARKS.values(), in_text(Verdict.NOT_RUN), STALE, SILENT)
    signs = [mark.sign for mark in marks if mark.sign] + [
        STATUSES[label].symbol for label in (StatusLabel.WORKAROUND, StatusLabel.PARTIAL)
    ]
    written = [stand_in(UnicodeEncodeError("ascii", sign, 0, len(sign), "lacking"))[0] for sign in signs]
    assert len(set(written)) == len(signs)
    assert [len(one) for one in written] == [len(sign) for sign in signs]


def test_the_matrix_is_whole_on_an_ascii_terminal(new_store: NewStore, filled_store: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "KNOWNGOOD_DATA_DIR": str(tmp_path)}
    environment["KNOWNGOOD_DATABASE_URL"] = new_store(filled_store)
    command = [sys.executable, "-m", "knowngood.main", "matrix", "--all"]
    done = subprocess.run(command, capture_output=True, env=environment, check=False, text=True)
    assert done.returncode == 0, done.stderr
    assert ". does not apply" in done.stdout
