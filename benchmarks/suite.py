"""The runner's overhead on the arms themselves, and its saving against the obvious loop.

(a) is the sum of the arms' own seconds, from after `import torch` to their last observation, as the records say.
(b) is a fresh `python -m venv`, `pip install` and `python repro.py --arm ...` for the first `LOOP_ARMS` arms of one
issue, one after the other. Both have their caches filled beforehand (pip's and uv's).
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from knowngood.catalogue.loader import read_catalogue, shipped_catalogue
from knowngood.domain.issue import environment_request
from knowngood.store.engine import connect, reading
from knowngood.store.queries import load_attempts

BUILD = os.environ.get("KNOWNGOOD_BENCH_BUILD", "torch-2.6.0+cu124")
ISSUE = "pytorch-151290"
ROUNDS = 3
LOOP_ARMS = 4


@dataclass(frozen=True)
class Round:
    wall_s: float
    own_s: float
    arms: int
    slots: int

    @property
    def per_core(self) -> float:
        return self.wall_s * self.slots / self.own_s


def run() -> None:
    rounds = [_ours() for _ in range(ROUNDS)]
    for one in rounds:
        print(
            f"whole CPU catalogue on {BUILD}: {one.arms} arms, wall {one.wall_s:.1f} s on {one.slots} slots, "
            f"own time {one.own_s:.1f} s: {one.per_core:.2f}x per core",
            flush=True,
        )
    ratios = sorted(one.per_core for one in rounds)
    print(f"(a) median {statistics.median(ratios):.2f}x, spread {ratios[0]:.2f} to {ratios[-1]:.2f}")
    looped, arms = _loop()
    ours = statistics.median(one.wall_s / one.arms for one in rounds)
    print(f"(b) plain loop: {looped:.1f} s an arm over {arms} arms; ours {ours:.1f} s an arm: {looped / ours:.1f}x")


def _ours() -> Round:
    """A fresh store and fresh environments; only the package cache is warm."""
    slots = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "knowngood", "run", "--builds", BUILD, "--issues", "all", "--json"]
        begun = time.perf_counter()
        subprocess.run(command, env={**os.environ, "KNOWNGOOD_DATA_DIR": folder}, stdout=subprocess.DEVNULL, check=True)
        wall = time.perf_counter() - begun
        own = _own_seconds(Path(folder))
    return Round(wall, sum(own), len(own), slots)


def _own_seconds(folder: Path) -> list[float]:
    catalogue = read_catalogue([shipped_catalogue()])
    engine = connect(f"sqlite:///{folder / 'knowngood.sqlite3'}")
    with reading(engine) as s:
        rows = [row for issue in catalogue.issues for row in load_attempts(s, issue.id, BUILD, "cpu-x86_64")]
    engine.dispose()
    return [row.attempt.record.own_s for row in rows]


def _loop() -> tuple[float, int]:
    """Seconds per arm of the obvious way to do it."""
    catalogue = read_catalogue([shipped_catalogue()])
    build = next(build for build in catalogue.builds if build.id == BUILD)
    issue = next(issue for issue in catalogue.issues if issue.id == ISSUE)
    script = shipped_catalogue() / issue.id / "repro.py"
    arms = [arm.id for arm in issue.arms][:LOOP_ARMS]
    seconds = []
    for arm in arms:
        with tempfile.TemporaryDirectory() as folder:
            begun = time.perf_counter()
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            python = Path(folder) / "bin" / "python"
            packages = [
                f"torch=={build.requirement}",
                "numpy",
                "setuptools",
                *environment_request(issue, build).requirements,
            ]
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
            subprocess.run([python, script, "--arm", arm], stdout=subprocess.DEVNULL, check=False)
            seconds.append(time.perf_counter() - begun)
            print(f"    {arm}: {seconds[-1]:.1f} s", flush=True)
    return statistics.mean(seconds), len(seconds)
