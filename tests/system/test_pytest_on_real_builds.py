"""The pytest plugin and single scripts with a real torch: the release before a bug, and the one that has it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from uv import find_uv_bin

from tests.system.real_builds import MARKS, ROOT, data_folder

# Given less time than the first of these, it begins later: two uv at once fetch twice what both want, 1.7 of 5.9 GB.
pytestmark = [pytest.mark.timeout(1700), *MARKS]

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

# What ten rows say on the faulty release, each in seconds of processor, most of them torch's import.
VERDICTS = {
    "pytorch-133762": "THE ISSUE",
    "pytorch-152262": "THE ISSUE",
    "pytorch-169253": "THE ISSUE",
    "pytorch-195488": "THE ISSUE",
    "pytorch-198056": "THE ISSUE",
    "pytorch-106893": "GOOD",
    "pytorch-113539": "GOOD",
    "pytorch-131411": "GOOD",
    "pytorch-142399": "GOOD",
    "pytorch-193793": "GOOD",
}

# Each script as a program of its own; torch is imported once, before them all.
FORKED = """
import os, runpy, sys
import torch

for script in sys.argv[1:]:
    if os.fork() == 0:
        sys.argv, sys.stdout = [script], open(script + ".txt", "w")
        runpy.run_path(script, run_name="__main__")
    os.wait()
"""


@dataclass(frozen=True)
class Release:
    """An environment with this release of torch, pytest and the project."""

    version: str
    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    def pytest(self, tests: str, *flags: str) -> str:
        (self.folder / "small_library.py").write_text(LIBRARY)
        (self.folder / "test_small_library.py").write_text(tests)
        command: list[str | Path] = [
            self.python,
            "-m",
            "pytest",
            "-rA",
            "--strict-markers",
            "-p",
            "no:cacheprovider",
            *flags,
            "--rootdir",
            self.folder,
        ]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "PYTHONPATH": str(self.folder),
            "TORCHINDUCTOR_CACHE_DIR": str(self.folder / "inductor"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",  # processes that compile would import torch once more
        }
        done = subprocess.run(
            [*command, self.folder / "test_small_library.py"],
            env=environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr


@pytest.fixture(scope="module", params=[pytest.param(HEALTHY, marks=pytest.mark.soak), FAULTY])
def release(request: pytest.FixtureRequest) -> Iterator[Release]:
    """One at a time, because each takes gigabytes."""
    with data_folder() as folder:
        made = Release(request.param, folder)
        uv = find_uv_bin()
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, folder / "venv"], check=True)
        wanted = [f"torch=={request.param}", "numpy", "setuptools", "pytest", "pytest-xdist", "-e", str(ROOT)]
        subprocess.run([uv, "pip", "install", "-q", "--python", made.python, *wanted], check=True)
        yield made


@pytest.mark.parametrize(
    "workers", [pytest.param((), id="alone"), pytest.param(("-n", "2"), id="xdist", marks=pytest.mark.soak)]
)
def test_a_bug_of_torch_fails_where_it_is_and_runs_where_it_is_not(release: Release, workers: tuple[str, ...]) -> None:
    told = release.pytest(TESTS, *workers)
    if release.version == HEALTHY:
        assert " 3 passed in" in told
        assert "pytorch-151290: passes here" in told
    else:
        assert " 2 passed, 1 xfailed in" in told
        assert "XFAIL test_small_library.py::test_it_counts_when_compiled - pytorch-151290: passes as " in told


def test_a_fix_is_noticed(release: Release) -> None:
    told = release.pytest(MENDED)
    if release.version == HEALTHY:
        assert " 3 passed in" in told
    else:
        assert "[XPASS(strict)] pytorch-151290: passes as reported, fails here" in told
        assert " 1 failed, 2 passed in" in told


def test_a_script_as_it_is_handed_out_needs_a_torch_and_nothing_else(release: Release, tmp_path: Path) -> None:
    if release.version == HEALTHY:
        pytest.skip("the verdicts are the faulty release's")
    for id_ in VERDICTS:
        handed_out = [sys.executable, "-m", "knowngood", "issue", id_, "--script"]
        script = subprocess.run(handed_out, cwd=ROOT, capture_output=True, check=True).stdout
        (tmp_path / f"{id_}.py").write_bytes(script)
    alone, *others = (f"{id_}.py" for id_ in VERDICTS)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    with (tmp_path / f"{alone}.txt").open("w") as output:
        subprocess.run([release.python, alone], env=environment, cwd=tmp_path, stdout=output, check=False)
    subprocess.run([release.python, "-c", FORKED, *others], env=environment, cwd=tmp_path, check=True)
    last_lines = {id_: (tmp_path / f"{id_}.py.txt").read_text().splitlines()[-1] for id_ in VERDICTS}
    assert {id_: line.partition(":")[0] for id_, line in last_lines.items()} == VERDICTS
