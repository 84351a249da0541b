"""An installation for tests on a GPU: its one build is a torch that is on this machine, its issues are toys."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pynvml

from knowngood.domain.builds.build import BuildId
from knowngood.domain.measuring.machine import Gpu
from knowngood.store.engine import connect, reading
from knowngood.store.queries import load_attempts
from knowngood.store.records import AttemptRow
from knowngood_workers.host.gpu_lock import GpuReading, device_trouble, read_device

ROOT = Path(__file__).parents[2]
TOYS = ROOT / "tests" / "gpu_repros"

_COMMAND = (sys.executable, "-m", "knowngood")
_RUN_S = 200

# What the harness reports, and adoption compares: versions as imported, Triton's as installed.
_ASK = """
import importlib.metadata, json, platform, torch, triton
told = {"torch": torch.__version__, "cuda": torch.version.cuda, "python": platform.python_version()}
print(json.dumps({**told, "triton": importlib.metadata.version("triton")}))
"""


@dataclass(frozen=True)
class OwnTorch:
    """An interpreter of this machine and the torch it imports."""

    python: Path
    told: Mapping[str, str]

    @property
    def build(self) -> BuildId:
        return BuildId(self.told["torch"], python=self._python)

    @property
    def _python(self) -> str:
        return ".".join(self.told["python"].split(".")[:2])

    @property
    def table(self) -> str:
        """Its column in a builds.toml."""
        torch, _, local = self.told["torch"].partition("+")
        words = {"torch": torch, "local": local, "cuda": self.told["cuda"], "triton": self.told["triton"]}
        words |= {"python": self._python, "origin": "default"}
        lines = [f'{key} = "{word}"' for key, word in words.items() if word]
        return "\n".join(["[[build]]", *lines, "as_of = 2026-11-01", ""])


def find_own_torch(environ: Mapping[str, str] = os.environ) -> OwnTorch | str:
    """The torch of KNOWNGOOD_GPU_PYTHON, else of the first `python3`; or a sentence on why there is none."""
    name = environ.get("KNOWNGOOD_GPU_PYTHON", "python3")
    python = shutil.which(name)
    if python is None:
        return f"{name} is not there; set KNOWNGOOD_GPU_PYTHON to a Python with torch and Triton"
    ran = subprocess.run([python, "-I", "-c", _ASK], capture_output=True, text=True, timeout=120, check=False)
    if ran.returncode != 0:
        reason = ran.stderr.strip().rpartition("\n")[2]
        return f"{name} has no torch and Triton ({reason}); set KNOWNGOOD_GPU_PYTHON to a Python that has"
    told = json.loads(ran.stdout.splitlines()[-1])
    return OwnTorch(Path(python), told) if told["cuda"] else f"the torch of {name} is built without CUDA"


@dataclass(frozen=True)
class Device:
    """A GPU as it was before the tests, and what is known of it now. NVML must be open."""

    gpu: Gpu
    uuid: str
    idle: GpuReading

    @property
    def is_free(self) -> bool:
        """No process computes on it, and its memory is back."""
        return device_trouble(self.gpu, self.idle, read_device(self.uuid)) is None


def look_at(gpu: Gpu) -> Device:
    uuid = str(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(gpu.index)))
    return Device(gpu, uuid, read_device(uuid))


@dataclass(frozen=True)
class Laboratory:
    """A data folder of its own below `folder`; `gpus` are those its workers may use."""

    folder: Path
    torch: OwnTorch
    gpus: tuple[Gpu, ...]

    def prepare(self) -> None:
        """Write the catalogue and make the database, so that it can be read from the beginning."""
        builds = self.folder / "builds"
        builds.mkdir(parents=True)
        (builds / "builds.toml").write_text(self.torch.table)
        subprocess.run([*_COMMAND, "migrate"], env=self._environment, cwd=ROOT, check=True, timeout=60)

    @property
    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "KNOWNGOOD_DATA_DIR": str(self.folder / "data"),
            "KNOWNGOOD_CATALOGUE": os.pathsep.join([str(TOYS), str(self.folder / "builds")]),
            "KNOWNGOOD_SHIPPED": "false",
            "CUDA_VISIBLE_DEVICES": ",".join(str(gpu.index) for gpu in self.gpus),
        }

    @contextmanager
    def running(self, *issues: str) -> Iterator[subprocess.Popen[bytes]]:
        """`knowngood run` of these issues with the machine's own torch, while the block runs and until it has ended."""
        chosen = ("--python", str(self.torch.python), "--builds", str(self.torch.build), "--issues", ",".join(issues))
        said = self.folder / "said"
        with said.open("wb") as output:
            command = [*_COMMAND, "run", *chosen]
            process = subprocess.Popen(command, env=self._environment, cwd=ROOT, stdout=output, stderr=output)
        try:
            yield process
            process.wait(timeout=_RUN_S)
        finally:
            process.terminate()
            process.wait(timeout=60)
        assert process.returncode == 0, said.read_text(errors="replace")

    def run(self, *issues: str) -> None:
        with self.running(*issues):
            pass

    def attempts(self, issue: str) -> dict[str, AttemptRow]:
        """The attempts of each arm by now; each has one attempt at most. Where it has variants, of each of these."""
        engine = connect(f"sqlite:///{self.folder / 'data' / 'knowngood.sqlite3'}")
        with reading(engine) as s:
            rows = load_attempts(s, issue, str(self.torch.build), self.gpus[0].hardware)
        engine.dispose()
        found = {row.attempt.arm if row.attempt.variant == "default" else row.attempt.variant: row for row in rows}
        assert len(found) == len(rows)
        return found
