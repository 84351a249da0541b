"""A complete installation that knows only the toy catalogue: real command, real processes, wheels from a folder."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uv import find_uv_bin

from tests.forked_commands import run_command
from tests.make_wheels import make_wheels

ROOT = Path(__file__).parents[1]
TOYS = ROOT / "tests" / "mini_repros"


@dataclass(frozen=True)
class Installation:
    """`data` is its data folder; `command` runs `knowngood` in it (forked_commands.py)."""

    data: Path
    environment: Mapping[str, str]

    @property
    def database(self) -> str:
        return self.environment["KNOWNGOOD_DATABASE_URL"] or f"sqlite:///{self.data / 'knowngood.sqlite3'}"

    def command(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return run_command(arguments, {**self.environment, **more}, timeout_s=600)

    def answer(self, *arguments: str) -> Any:
        done = self.command(*arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def make_installation(folder: Path, wheels: Path, *, catalogue: Path = TOYS, store: str = "") -> Installation:
    """An installation in `folder` whose only packages are the toy wheels in `wheels`; `store` is another one's address
    than that of the file it makes by itself.
    """
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "KNOWNGOOD_DATA_DIR": str(folder / "data"),
        "KNOWNGOOD_DATABASE_URL": store,
        "KNOWNGOOD_CATALOGUE": str(catalogue),
        "KNOWNGOOD_SHIPPED": "false",
        "KNOWNGOOD_MEMORY_LIMIT": str(512 << 20),
        # toy-flaky-1 counts attempts in a folder that all of them see: what further isolation takes away. Packs run by
        # their own settings, as far shut off as the kernel allows.
        "KNOWNGOOD_MAX_ISOLATION": "network",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_NO_INDEX": "1",
        "UV_CACHE_DIR": str(folder / "uv"),
        # Read by nobody, and seen by no arm: the toy that looks for secrets fails when it finds one.
        "KNOWNGOOD_TOKEN": "a-secret",
        "AWS_SECRET_ACCESS_KEY": "a-secret",
    }
    (folder / "home").mkdir(parents=True, exist_ok=True)
    return Installation(folder / "data", environment)


def toy_wheels(folder: Path) -> Path:
    return make_wheels(folder / "wheels")


def make_python(folder: Path, wheels: Path, *packages: str) -> Path:
    """An interpreter that has these toy wheels installed."""
    uv, own = find_uv_bin(), {"PATH": os.environ["PATH"], "UV_CACHE_DIR": f"{folder}-cache", "UV_NO_CONFIG": "1"}
    python = folder / "bin" / "python"
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, folder], env=own, check=True)
    where = ["--no-index", "--find-links", str(wheels), "--python", str(python)]
    subprocess.run([uv, "pip", "install", "-q", *where, *packages], env=own, check=True)
    return python
