"""A build that is on this machine already, used as it is: an image's own torch becomes a column too.

Nothing is installed and nothing is changed. What its interpreter imports decides which column it is; evidence made with
it says `provenance: adopted` among what was imported, because nobody here resolved or checked its wheels.
"""

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from knowngood.domain.builds.build import Build, difference
from knowngood.domain.errors import BadRequest
from knowngood.domain.message import english
from knowngood_workers.provision.import_probe import ask_python, import_torch
from knowngood_workers.provision.resolver import ProvisionFailure
from knowngood_workers.provision.uv_cli import ProcessObserver

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


def adopt(python: str, builds: Iterable[Build], environ: Mapping[str, str]) -> tuple[str, Path]:
    """The column that the torch of `python` is, and its path. Raises BadRequest where there is no such, or no torch.

    The path is not resolved: a virtual environment's `python` is a link, and is known by where it lies.
    """
    program = shutil.which(python, path=environ.get("PATH"))
    if program is None:
        raise BadRequest(f"--python {python} is no program here")
    path = Path(program).absolute()
    try:
        return find_build(inspect_interpreter(path, environ), builds).id, path
    except ProvisionFailure as failure:
        raise BadRequest(f"--python {python} cannot be used: {failure.trouble.sentence}") from failure


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
