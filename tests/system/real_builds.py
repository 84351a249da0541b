"""Real torch builds from the package index, by the real command: several GB, so only in CI or when asked for."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
OLD, NEW = "torch-2.7.0+cu126", "torch-2.7.1+cu126"  # with the same 2 GB of CUDA, which are installed once
OLDER = "torch-2.5.1+cu124"

MARKS = [
    pytest.mark.system,
    pytest.mark.timeout(3700),  # a slow network brings 5 GB; and begun first, because others fill the time meanwhile
    pytest.mark.skipif(
        not (os.environ.get("CI") or os.environ.get("KNOWNGOOD_E2E")),
        reason="downloads two torch builds; set KNOWNGOOD_E2E=1",
    ),
]


def run(data: Path, *arguments: str, **more: str) -> dict[str, Any]:
    """`knowngood run ... --json` with its data in `data`; packages come from where this machine's pip takes them."""
    done = subprocess.run(
        [sys.executable, "-m", "knowngood", "run", *arguments, "--json"],
        env={**os.environ, "KNOWNGOOD_DATA_DIR": str(data), **more},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@contextmanager
def data_folder() -> Iterator[Path]:
    """On the disk of uv's cache, so that environments are hard links."""
    above = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "knowngood-tests"
    above.mkdir(parents=True, exist_ok=True)
    folder = Path(mkdtemp(dir=above))
    yield folder
    shutil.rmtree(folder)
