"""The pytest plugin in a small project with a real torch: the release before the bug, and the one that has it."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from uv import find_uv_bin

from tests.system.real_builds import MARKS, ROOT, data_folder

pytestmark = MARKS

HEALTHY, FAULTY = "2.6.0", "2.7.1"
LIBRARY = """
import torch


def count_positive(x):
    return (x > 0).sum(0)


compiled = torch.compile(count_positive)
"""
TESTS = """
import knowngood
import pytest
import torch

import small_library


def check(count):
    torch.set_num_threads(8)
    x = torch.randn(16384, 6)
    assert torch.equal(count(x), torch.count_nonzero(x > 0, dim=0))


@pytest.mark.knowngood("pytorch-151290")
def test_it_counts_when_compiled():
    check(small_library.compiled)


def test_it_counts():
    check(small_library.count_positive)


def test_what_the_library_says_is_what_torch_does():
    broken = knowngood.affected("pytorch-151290")
    assert broken is torch.__version__.startswith("2.7.1")
"""
MENDED = TESTS.replace("check(small_library.compiled)", "check(small_library.count_positive)")

Run = Callable[..., str]


@pytest.fixture(scope="module", params=[pytest.param(HEALTHY, marks=pytest.mark.soak), FAULTY])
def release(request: pytest.FixtureRequest) -> Iterator[tuple[str, Run]]:
    """One at a time, because each takes gigabytes; and how pytest runs in it."""
    with data_folder() as folder:
        python = folder / "venv" / "bin" / "python"
        uv = find_uv_bin()
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, folder / "venv"], check=True)
        wanted = [f"torch=={request.param}", "numpy", "setuptools", "pytest", "pytest-xdist", "-e", str(ROOT)]
        subprocess.run([uv, "pip", "install", "-q", "--python", python, *wanted], check=True)

        def run(tests: str, *flags: str) -> str:
            return run_pytest(python, folder, tests, *flags)

        yield request.param, run


def run_pytest(python: Path, folder: Path, tests: str, *flags: str) -> str:
    (folder / "small_library.py").write_text(LIBRARY)
    (folder / "test_small_library.py").write_text(tests)
    command: list[str | Path] = [
        python,
        "-m",
        "pytest",
        "-rA",
        "--strict-markers",
        "-p",
        "no:cacheprovider",
        *flags,
        "--rootdir",
        folder,
    ]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "PYTHONPATH": str(folder),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
    }
    done = subprocess.run(
        [*command, folder / "test_small_library.py"],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "workers", [pytest.param((), id="alone"), pytest.param(("-n", "2"), id="xdist", marks=pytest.mark.soak)]
)
def test_a_bug_of_torch_fails_where_it_is_and_runs_where_it_is_not(
    release: tuple[str, Run], workers: tuple[str, ...]
) -> None:
    version, run = release
    told = run(TESTS, *workers)
    if version == HEALTHY:
        assert " 3 passed in" in told
        assert "pytorch-151290: passes here" in told
    else:
        assert " 2 passed, 1 xfailed in" in told
        assert "XFAIL test_small_library.py::test_it_counts_when_compiled - pytorch-151290: passes as " in told


def test_a_fix_is_noticed(release: tuple[str, Run]) -> None:
    version, run = release
    told = run(MENDED)
    if version == HEALTHY:
        assert " 3 passed in" in told
    else:
        assert "[XPASS(strict)] pytorch-151290: passes as reported, fails here" in told
        assert " 1 failed, 2 passed in" in told
