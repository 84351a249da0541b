"""A Python that holds the stand-in torch, a host that has it, and what tests ask of processes."""

import contextlib
import os
import subprocess
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

import psutil
from uv import find_uv_bin

from knowngood_workers.agent.sandbox_policy import SandboxInputs
from tests.make_wheels import make_wheels

SECRET = "kg_hunter2_hunter2"  # noqa: S105 - a decoy


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


@dataclass(frozen=True)
class Host:
    """A worker's machine as its owner knows it: a home with a key, a data folder with the database, a store and other
    runs.
    """

    folder: Path
    python: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def database(self) -> Path:
        return self.data / "knowngood.sqlite3"

    @property
    def others(self) -> Path:
        return self.data / "scratch" / "kg-others"

    @property
    def kernel(self) -> Path:
        return self.others / "inductor" / "kernel.so"

    @property
    def environment(self) -> Path:
        return self.python.parents[1]

    @property
    def site(self) -> Path:
        return next(self.environment.glob("lib/*/site-packages"))

    @property
    def bytecode(self) -> Path:
        return Path(cache_from_source(str(self.site / "torch" / "__init__.py")))

    @property
    def stored(self) -> Path:
        return self.data / "bytecode" / "torch.pyc"

    @property
    def secrets(self) -> list[Path]:
        return [self.home / ".ssh" / "id_ed25519", self.database, self.kernel, self.environment / "pylock.toml"]

    def sandbox_inputs(
        self, memory_bytes: int, interpreter: Path | None = None, *, is_mutable: bool = False
    ) -> SandboxInputs:
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        return SandboxInputs(self.python, self.data, memory_bytes, interpreter, is_mutable=is_mutable, environ=environ)


def make_host(folder: Path, *more: str) -> Host:
    """A host in `folder`, with a decoy for each of its secrets and at each of these places."""
    (folder / "data").mkdir()
    host = Host(folder, make_toy_python(folder / "data", "torch==0.0.1", "numpy", "mini_extra", "triton"))
    for path in (*host.secrets, *(folder / place for place in more)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SECRET)
    return host


def survivors(mark: Path) -> list[str]:
    """Names of processes, other than zombies, whose environment or command names something below `mark`."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            text = " ".join([*process.environ().values(), *process.cmdline()])
            if str(mark) in text and process.status() != psutil.STATUS_ZOMBIE and process.pid != os.getpid():
                found.append(process.name())
    return found
