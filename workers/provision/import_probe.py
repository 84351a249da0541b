"""What a process in an environment imports: asked of itself, and remembered by its wheels."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from knowngood.app.domain.issue import digest
from knowngood.app.domain.verdicts.outcome import Trouble, TroubleCode
from knowngood.workers.common.atomic_write import write_whole
from knowngood.workers.provision.pylock import Lock
from knowngood.workers.provision.resolver import ProvisionFailure
from knowngood.workers.provision.uv_cli import KILLED, Watch, run_watched

_PROBE_S = 600
_MARK = "@imported "

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
print("@imported " + json.dumps(found))
"""


def import_torch(python: Path, environ: Mapping[str, str], watch: Watch) -> dict[str, str]:
    """Import torch and its companions and report. Raises ProvisionFailure where torch cannot be imported."""
    ran = run_watched(
        [str(python), "-I", "-B", "-W", "ignore", "-c", _PROBE], env=environ, watch=watch, timeout_s=_PROBE_S
    )
    said = ran.output.splitlines()
    told = next((line for line in reversed(said) if line.startswith(_MARK)), None)
    if ran.code != 0 or told is None:
        last = next((line.strip() for line in reversed(said) if line.strip()), f"exit {ran.code}")
        sentence = f"the build was installed but torch cannot be imported: {KILLED if ran.was_killed else last}"
        raise ProvisionFailure(Trouble(TroubleCode.PROVISION_FAILED, sentence))
    return {str(name): str(value) for name, value in json.loads(told.removeprefix(_MARK)).items()}


@dataclass(frozen=True)
class Proofs:
    """Remembered imports. What some wheels imported, they import again beside more wheels, under the same interpreter.

    So torch is imported once for all environments of a build whose extra packages leave its own wheels alone. Should an
    extra package break the import all the same, every attempt reports what it imported itself.
    """

    root: Path

    def find(self, lock: Lock, interpreter: Path) -> dict[str, str] | None:
        keys = {wheel.key for wheel in lock.wheels}
        for path in sorted(self._folder(lock, interpreter).glob("*.json")):
            try:
                told = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if keys.issuperset(told["wheels"]):
                return {str(name): str(value) for name, value in told["imported"].items()}
        return None

    def keep(self, lock: Lock, interpreter: Path, imported: Mapping[str, str]) -> None:
        keys = sorted(wheel.key for wheel in lock.wheels)
        path = self._folder(lock, interpreter) / f"{digest(' '.join(keys))}.json"
        write_whole(path, json.dumps({"wheels": keys, "imported": dict(imported)}))

    def _folder(self, lock: Lock, interpreter: Path) -> Path:
        torch = lock.find("torch")
        return self.root / digest(f"{torch.key if torch else ''} {interpreter} {interpreter.stat().st_mtime_ns}")
