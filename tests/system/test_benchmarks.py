"""Every benchmark still runs: each at its smallest size, which measures nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]
LONG = {"browser", "commands", "gate", "pages"}  # each 20 to 35 s of a processor, most of it to start what is measured
OF_REAL_BUILDS = {
    "amounts": "runs on a whole torch",
    "suite": "measures a whole torch",
    "timing": "runs on a whole torch",
    "provision": "installs a whole torch",
}
NAMES = sorted(
    one.stem for one in (ROOT / "benchmarks").glob("*.py") if "\ndef run() -> None:" in one.read_text(encoding="utf-8")
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak) if name in LONG else name for name in NAMES]
)
def test_a_benchmark_runs_at_its_smallest_size(name: str, tmp_path: Path) -> None:
    if name in OF_REAL_BUILDS:
        pytest.skip(OF_REAL_BUILDS[name])
    command = [sys.executable, "-m", "benchmarks", name]
    settings = {**os.environ, "KNOWNGOOD_BENCH_SMALLEST": "1", "KNOWNGOOD_DATA_DIR": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) > 1
