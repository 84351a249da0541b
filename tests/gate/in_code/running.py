"""Processes of their own whose environment has the torch that a test says: its metadata, which is all that is read."""

import os
import subprocess
import sys
from pathlib import Path


def environment_with(folder: Path, *packages: str) -> dict[str, str]:
    """An environment of variables in which these (`torch-2.7.1+cu126`) seem installed, and no store is."""
    site = folder / "site"
    for name in packages:
        (site / f"{name}.dist-info").mkdir(parents=True, exist_ok=True)
    return {"PATH": os.environ["PATH"], "HOME": str(folder / "nobody"), "PYTHONPATH": str(site)}


def python(environment: dict[str, str], code: str, *arguments: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout
