"""Probes of an environment's Python: the versions that it imports, remembered by its wheels."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from knowngood.domain.issue import digest
from knowngood.domain.verdicts.outcome import Trouble, TroubleCode
from knowngood_workers.common.atomic_write import read_json, write_whole
from knowngood_workers.provision.pylock import Lock
from knowngood_workers.provision.resolver import ProvisionFailure
from knowngood_workers.provision.uv_cli import KILLED, ProcessObserver, run_watched, was_killed

_S = 600
_MARK = "@found "

# Runs inside the build, isolated, with GPUs hidden: what is asked for is what is imported, not what is written in
# metadata. `_cuda_getArchFlags` tells what the wheel was compiled for without touching a GPU.
_PROBE = """
import json, sys
import torch
def version_of(name):
    try:
        return str(__import__(name).__version__)
    except ImportError:
        return ""
flags = getattr(torch._C, "_cuda_getArchFlags", None) if hasattr(torch, "_C") else None
found = {
    "python": "%d.%d.%d" % sys.version_info[:3],
    "torch": str(torch.__version__),
    "cuda": torch.version.cuda or "",
    "git": torch.version.git_version or "",
    "arch": (flags() or "") if flags else "",
    **{name: version_of(name) for name in ("triton", "numpy", "setuptools")},
}
print()
print("@found " + json.dumps(found))
"""


def import_torch(python: Path, environ: Mapping[str, str], observer: ProcessObserver) -> dict[str, str]:
    """Import torch and its companions and report. Raises ProvisionFailure where torch cannot be imported."""
    return ask_python(python, _PROBE, environ, observer, "the build was installed but torch cannot be imported")


def ask_python(
    python: Path, script: str, environ: Mapping[str, str], observer: ProcessObserver, problem: str
) -> dict[str, str]:
    """The JSON object that `script` prints behind the mark `@found `. Raises ProvisionFailure, which says `problem`,
    where it does not.
    """
    ran = run_watched(
        [str(python), "-I", "-B", "-W", "ignore", "-c", script], env=environ, observer=observer, timeout_s=_S
    )
    lines = [line.strip() for line in reversed(ran.stdout.splitlines()) if line.strip()]
    answer = next((line for line in lines if line.startswith(_MARK)), None)
    if ran.returncode != 0 or answer is None:
        last = KILLED if was_killed(ran) else next(iter(lines), f"exit {ran.returncode}")
        raise ProvisionFailure(Trouble(TroubleCode.PROVISION_FAILED, f"{problem}: {last}"))
    return {str(name): str(value) for name, value in json.loads(answer.removeprefix(_MARK)).items()}


@dataclass(frozen=True)
class ImportCache:
    """Remembered imports. What some wheels imported, they import again beside more wheels, under the same interpreter.

    So torch is imported once for all environments of a build whose extra packages leave its own wheels alone. Should an
    extra package break the import all the same, every attempt reports what it imported itself.
    """

    root: Path

    def find(self, lock: Lock, interpreter: Path) -> dict[str, str] | None:
        keys = {wheel.key for wheel in lock.wheels}
        proofs = map(read_json, sorted(self._folder(lock, interpreter).glob("*.json")))
        return next((dict(proof["imported"]) for proof in proofs if proof and keys.issuperset(proof["wheels"])), None)

    def keep(self, lock: Lock, interpreter: Path, imported: Mapping[str, str]) -> None:
        keys = sorted(wheel.key for wheel in lock.wheels)
        path = self._folder(lock, interpreter) / f"{digest(' '.join(keys))}.json"
        write_whole(path, json.dumps({"wheels": keys, "imported": dict(imported)}))

    def _folder(self, lock: Lock, interpreter: Path) -> Path:
        torch = lock.find("torch")
        return self.root / digest(f"{torch.key if torch else ''} {interpreter} {interpreter.stat().st_mtime_ns}")
