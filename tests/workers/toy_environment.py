"""A Python that holds the stand-in torch, and what tests ask of processes."""

import contextlib
import os
import subprocess
from pathlib import Path

import psutil
from uv import find_uv_bin

from tests.make_wheels import make_wheels


def make_toy_python(folder: Path, *packages: str) -> Path:
    """The interpreter of a new environment with `packages` out of the toy wheels."""
    wheels = make_wheels(folder / "wheels")
    python = folder / "environment" / "bin" / "python"
    quiet = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "UV_NO_CONFIG": "1",
        "UV_CACHE_DIR": str(folder / "cache"),
    }
    source = ("--no-index", "--find-links", str(wheels), "--python", str(python))
    for command in (("venv", "-q", str(python.parents[1])), ("pip", "install", "-q", *source, *packages)):
        subprocess.run([find_uv_bin(), *command], check=True, env=quiet)
    return python


def survivors(mark: Path) -> list[str]:
    """Names of processes, other than zombies, whose environment or command names something below `mark`."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            text = " ".join([*process.environ().values(), *process.cmdline()])
            if str(mark) in text and process.status() != psutil.STATUS_ZOMBIE and process.pid != os.getpid():
                found.append(process.name())
    return found
