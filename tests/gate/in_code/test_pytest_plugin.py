"""The plugin in runs of pytest of their own, with the torch that a test says."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.gate.in_code.running import environment_with

FAULTY, HEALTHY = "torch-2.7.1+cu126", "torch-2.6.0+cu124"
WATCHED = "--knowngood-watch=pytorch-151290,xla-8464"

TESTS = """
import sys
import pytest

@pytest.mark.knowngood("pytorch-151290")
def test_that_the_bug_breaks():
    assert sys.argv is None

@pytest.mark.knowngood("pytorch-151290")
def test_that_works():
    assert "torch" not in sys.modules

@pytest.mark.knowngood("pytorch-151290", action="skip")
def test_to_skip():
    raise SystemExit(9)

@pytest.mark.knowngood("pytorch-151290", raises=ZeroDivisionError)
def test_that_fails_otherwise():
    assert sys.argv is None

@pytest.mark.knowngood("pytorch-151290", hardware="cuda-sm_90")
class TestOnGpu:
    def test_of_the_cpus_path(self):
        pass
"""
WRONG = {
    "an unknown issue": ('"pytorch-15129"', 'no issue is called "pytorch-15129" here; nearest: pytorch-151290'),
    "no issue": ("", "the mark is written knowngood(issue, action="),
    "two": ('"pytorch-151290", "xla-8464"', "the mark is written knowngood(issue, action="),
    "an unknown key": ('"pytorch-151290", reason="so"', "the mark is written knowngood(issue, action="),
    "an unknown action": ('"pytorch-151290", action="run"', 'action="run" is none of xfail, skip'),
    "no class": ('"pytorch-151290", hardware="a toaster"', '"a toaster" is no hardware class'),
}
# Ours is loaded as in any run; others are left out that take longer to import than all the rest.
PLUGINS = [f"-pno:{name}" for name in ("cacheprovider", "schemathesis", "hypothesispytest", "anyio")]
PYTEST = ["-m", "pytest", *PLUGINS, "--strict-markers", "-rA"]


def run(folder: Path, torch: str, tests: str, *flags: str) -> tuple[int, str]:
    (folder / "test_it.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, *PYTEST, *flags],
        env={**environment_with(folder, torch), "COLUMNS": "400"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "1"), marks=pytest.mark.soak)], ids=["alone", "xdist"])
def test_where_the_issue_fails_the_tests_are_expected_to_fail(tmp_path: Path, workers: tuple[str, ...]) -> None:
    code, told = run(tmp_path, FAULTY, TESTS, WATCHED, *workers)
    assert (code, " 2 failed, 1 passed, 1 skipped, 1 xfailed in" in told) == (1, True), told
    assert "XFAIL test_it.py::test_that_the_bug_breaks - pytorch-151290: passes as reported, fails here" in told
    assert "[XPASS(strict)] pytorch-151290: passes as reported, fails here" in told  # a fix is noticed
    assert "FAILED test_it.py::test_that_fails_otherwise" in told
    assert "concerns the CPU path: see the CPU (torch-2.7.1+cu126, cuda-sm_90); so the test runs as any other" in told
    assert told.count("knowngood: pytorch-151290: passes as reported, fails") == 1  # in the header, not for each worker
    assert told.count("knowngood: xla-8464: concerns only environments with torch-xla") == 1


def test_where_it_does_not_the_tests_run_and_the_reason_is_told(tmp_path: Path) -> None:
    code, told = run(
        tmp_path, HEALTHY, TESTS.replace("sys.argv is None", "True").replace("raise SystemExit(9)", "pass")
    )
    assert (code, " 5 passed in" in told) == (0, True), told
    assert told.count("pytorch-151290: passes here") == 4


def test_where_nobody_knows_the_tests_run_too(tmp_path: Path) -> None:
    code, told = run(tmp_path, "torch-99.1.0", TESTS)
    assert code == 1
    assert "pytorch-151290: not tested: torch 99.1.0" in told
    assert "FAILED test_it.py::test_that_the_bug_breaks" in told


def test_an_issue_that_ends_the_process_is_never_tried(tmp_path: Path) -> None:
    """Of a package: its metadata is there as well."""
    (tmp_path / "site" / "torch_xla-2.5.1.dist-info").mkdir(parents=True)
    crash = 'import os, pytest\n@pytest.mark.knowngood("xla-8464")\ndef test_it(): os.abort()\n'
    code, told = run(tmp_path, "torch-2.5.1+cu124", crash)
    assert (code, " 1 skipped in" in told) == (0, True), told
    assert "xla-8464: fails here" in told


def test_an_unknown_issue_is_an_error_of_collecting_the_file(tmp_path: Path) -> None:
    """With xdist; alone it is the first of the marks below."""
    written, sentence = WRONG["an unknown issue"]
    code, told = run(tmp_path, FAULTY, _marked(written), "-n", "1")
    assert code in {1, 2}
    assert "ERROR collecting test_it.py" in told
    assert f"test_it.py::test_it: knowngood: {sentence}" in told
    assert "Traceback" not in told
    assert "INTERNALERROR" not in told


def test_so_is_a_mark_that_is_written_otherwise(tmp_path: Path) -> None:
    for name, (written, _) in WRONG.items():
        (tmp_path / f"test_{name.replace(' ', '_')}.py").write_text(_marked(written))
    code, told = run(tmp_path, FAULTY, "")
    assert (code, f" {len(WRONG)} errors in" in told) == (2, True), told
    assert "Traceback" not in told
    assert "INTERNALERROR" not in told
    for _, sentence in WRONG.values():
        assert sentence in told


def _marked(written: str) -> str:
    return f"import pytest\n@pytest.mark.knowngood({written})\ndef test_it(): pass\n"


def test_an_unknown_issue_to_watch_is_a_usage_error(tmp_path: Path) -> None:
    code, told = run(tmp_path, FAULTY, TESTS, "--knowngood-watch", "nonsense")
    assert (code, "INTERNALERROR" in told) == (4, False)
    assert 'ERROR: --knowngood-watch: knowngood: no issue is called "nonsense" here' in told


def test_without_the_plugin_nothing_of_it_is_there(tmp_path: Path) -> None:
    code, told = run(tmp_path, FAULTY, "def test_it(): pass\n", "-p", "no:knowngood", "--markers")
    assert (code, "@pytest.mark.knowngood" in told) == (0, False)
    code, told = run(tmp_path, FAULTY, "def test_it(): pass\n", "--markers")
    assert (code, "@pytest.mark.knowngood(issue, " in told) == (0, True)


def test_a_run_that_uses_no_mark_imports_next_to_nothing(tmp_path: Path) -> None:
    listing = """
import sys
def test_it():
    print("ours", *sorted(name for name in sys.modules if name.partition(".")[0] == "knowngood"))
"""
    _, told = run(tmp_path, FAULTY, listing)
    (ours,) = (line for line in told.splitlines() if line.startswith("ours"))
    assert ours.split() == [
        "ours",
        "knowngood",
        "knowngood.domain",
        "knowngood.domain.errors",
        "knowngood.gate",
        "knowngood.gate.in_code",
        "knowngood.gate.in_code.pytest_plugin",
    ]
