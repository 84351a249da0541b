"""Questions to an interpreter: what it imports, remembered by its wheels; and a build that is on this machine already,
used as it is: an image's own torch becomes a column too.

For the latter nothing is installed and nothing is changed. What its interpreter imports decides which column it is;
evidence made with it says `provenance: adopted` among what was imported, because nobody here resolved or checked its
wheels.
"""

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from knowngood.domain.builds.build import Build, difference
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import digest
from knowngood.domain.message import english
from knowngood.domain.verdicts.outcome import Trouble, TroubleCode
from knowngood_workers.common.files import read_json, write_whole
from knowngood_workers.provision.resolver import Lock, ProvisionFailure
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


PROVENANCE = "provenance"
_PACKAGES = """
import json
import shutil
from importlib.metadata import distributions
found = {str(one.metadata["Name"]): str(one.version) for one in distributions() if one.metadata["Name"]}
print("@found " + json.dumps(found))
"""


@dataclass(frozen=True)
class AdoptedEnvironment:
    """`imported` is what its process reports (see proof), `packages` what is installed beside it."""

    python: Path
    imported: Mapping[str, str]
    packages: Mapping[str, str]

    @property
    def in_words(self) -> str:
        versions = self.imported
        parts = [
            f"torch {versions['torch']}",
            f"Triton {versions['triton'] or 'none'}",
            f"CUDA {versions['cuda'] or 'none'}",
        ]
        return f"{', '.join(parts)} under Python {versions['python']}"

    @property
    def lock(self) -> str:
        """A list of the packages found, in place of a lock. Hashes are not known."""
        lines = [
            f"{name}=={version}"
            for name, version in sorted(self.packages.items(), key=lambda package: package[0].lower())
        ]
        return "\n".join(["# adopted: as found on the machine, not resolved", *lines, ""])


def inspect_interpreter(
    python: Path, environ: Mapping[str, str], observer: ProcessObserver | None = None
) -> AdoptedEnvironment:
    """Ask an interpreter what it holds. Raises ProvisionFailure where it cannot import torch."""
    observer = observer or ProcessObserver()
    passed = {name: value for name, value in environ.items() if name in {"PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH"}}
    env = {**passed, "HOME": "/nonexistent", "CUDA_VISIBLE_DEVICES": ""}
    imported = import_torch(python, env, observer)
    packages = ask_python(python, _PACKAGES, env, observer, f"{python.name} cannot list what is installed")
    return AdoptedEnvironment(python, {**imported, PROVENANCE: "adopted"}, packages)


def inspect_program(python: str, environ: Mapping[str, str]) -> AdoptedEnvironment:
    """The same of a program on the PATH, as `--python` names it. Raises BadRequest where there is none, or no torch.

    Its path is not resolved: a virtual environment's `python` is a link, and is known by where it lies.
    """
    program = shutil.which(python, path=environ.get("PATH"))
    if program is None:
        raise BadRequest(f"--python {python} is no program here")
    try:
        return inspect_interpreter(Path(program).absolute(), environ)
    except ProvisionFailure as failure:
        advice = "name the environment's interpreter: --python /path/to/venv/bin/python"
        raise BadRequest(f"--python {python} cannot be used: {failure.trouble.sentence}; {advice}") from failure


def find_build(adopted: AdoptedEnvironment, builds: Iterable[Build]) -> Build:
    """The build that it is: torch, git revision, CUDA, Triton and Python agree. Raises BadRequest with the nearest."""
    builds = tuple(builds)
    for build in builds:
        if difference(build, adopted.imported, {}) is None:
            return build
    release = adopted.imported["torch"].partition("+")[0]
    near = [
        f"{candidate.id} ({english(difference(candidate, adopted.imported, {}))})"
        for candidate in builds
        if candidate.requirement == release
    ]
    hint = f"; nearest: {'; '.join(near[:3])}" if near else f"; no build of torch {release} is declared"
    raise BadRequest(
        f"{adopted.python} holds {adopted.in_words}, which is no column of the catalogue{hint}. "
        "Declare it in builds.toml, or leave it out"
    )
