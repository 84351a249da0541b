"""A project's files and its environments: as locked, and with torch moved. uv resolves and installs.

The checkout itself is only ever read: what builds, installs or tests the project has a copy.
"""

import json
import re
import shutil
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from packaging.version import Version

from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import digest
from knowngood.environments.service import stated_in
from knowngood.git_files import ask_git, files_in
from knowngood.measure.projects.rules import BROUGHT, COUPLED, conflicting, moved_requirements
from knowngood_workers.common.programs import ask_program
from knowngood_workers.provision.adopted_env import AdoptedEnvironment, inspect_interpreter
from knowngood_workers.provision.download_estimate import UNPACKED, find_cached
from knowngood_workers.provision.resolver import BLOCK, ProvisionFailure, wrong_build_trouble
from knowngood_workers.provision.uv_cli import Fault, Installer, InstallerFailed

GIT = "try-bump"
BUILT = ("pyproject.toml", "setup.py")
"""Files that a project is built by; uv reads in it what the project itself asks."""
LOCKS = ("uv.lock", "pylock.toml", "poetry.lock", "pdm.lock", "Pipfile.lock", "requirements.txt", *BUILT)
"""Files that state the environment, the most exact first."""
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_OWN_SOURCES = ("vcs", "archive", "directory")
"""The keys in pylock.toml of a package that is from no index."""

_IMPORT_S = 600


@dataclass(frozen=True)
class Checkout:
    """The files of a project: those that git knows or would add, else all but what is made anew in any case."""

    folder: Path
    files: tuple[str, ...]

    @cached_property
    def digest(self) -> str:
        return digest(
            json.dumps([(name, sha256((self.folder / name).read_bytes()).hexdigest()) for name in self.files])
        )

    @property
    def variables(self) -> dict[str, str]:
        """For builds that ask git, which a copy has no more, for their version: that of the last tag."""
        with suppress(BadRequest):
            told = ask_git(GIT, "-C", str(self.folder), "describe", "--tags", "--abbrev=0").decode()
            return {"SETUPTOOLS_SCM_PRETEND_VERSION": found[0]} if (found := _VERSION.search(told)) else {}
        return {} if (self.folder / "PKG-INFO").exists() else {"SETUPTOOLS_SCM_PRETEND_VERSION": "0.0.0"}

    def copy(self, place: Path) -> None:
        for name in self.files:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.folder / name, place / name)


def read_checkout(folder: Path) -> Checkout:
    files = tuple(files_in(folder, GIT))
    if not files:
        raise BadRequest(f"{folder} has no files; name the project's checkout")
    return Checkout(folder, files)


@dataclass(frozen=True)
class Locker:
    """Locks for a project, as pylock.toml. `source` is a copy of its files, `packages` what its tests need besides."""

    installer: Installer
    interpreter: Path
    source: Path
    packages: tuple[str, ...]
    extras: tuple[str, ...]
    groups: tuple[str, ...]

    def as_locked(self, name: str) -> str:
        """By the file that states it. Raises InstallerFailed, BadEnvironment and BadRequest."""
        path = self.source / name
        named = [f"--{kind}={one}" for kind, ones in (("extra", self.extras), ("group", self.groups)) for one in ones]
        if path.name == "uv.lock":
            how = ("--frozen", "--no-hashes", "--no-emit-project", "--no-header", "--no-annotate", "-q")
            lines = self.installer.run("export", "--directory", str(path.parent), *how, *named).splitlines()
            return self._compile([line for line in lines if not line.startswith("warning")], ())
        if path.name in BUILT or re.fullmatch(r".*requirements.*\.(?:txt|in)", path.name):
            return self._compile((), (name, *named))
        return self._compile([*self._pins_of(path)], ())

    def _pins_of(self, lock: Path) -> Iterator[str]:
        """The requirements that a lock of another tool states for this Python; repositories and folders stay such."""
        content = lock.read_bytes()
        listed = packages_in(content.decode()) if lock.suffix == ".toml" else []
        own = {each["name"]: _requirement(each) for each in listed if each.keys() & {*_OWN_SOURCES}}
        pins = stated_in(content, lock.name, self.python, (*self.extras, *self.groups)).pins
        counts = Counter(pin.name for pin in pins)
        for pin in pins:
            place = pin.origin or pin.index
            if pin.name not in own and (pin.origin or place.startswith("conda:")):
                raise BadRequest(
                    f"{lock.name} has {pin.name} from {place}; export it as requirements.txt, and name that with --lock"
                )
            # Poetry locks two versions for Linux, one of them for processors that its marker does not name.
            is_open = counts[pin.name] > 1 and BROUGHT.fullmatch(pin.name)
            if pin.name in own or (pin.version and not is_open):
                yield own.get(pin.name, f"{pin.name}=={pin.version}")

    @property
    def python(self) -> str:
        return self.interpreter.name.removeprefix("python")

    def moved(self, lock: str, torch: str) -> str:
        """With another torch: what cannot stay beside it is freed, as far as the resolver names it. The project's own
        folders come along unasked. Raises InstallerFailed where the resolver refuses all the same.
        """
        pins, freed = versions_in(lock), frozenset(COUPLED)
        direct = [_requirement(each) for each in packages_in(lock) if each.keys() & {"vcs", "archive"}]
        folders = [block for block in lock.split(BLOCK)[1:] if re.search("^directory ?=", block, re.MULTILINE)]
        while True:
            try:
                wanted = [_torch(torch, pins["torch"]), *moved_requirements(pins, torch, freed), *direct]
                return "\n".join((self._compile(wanted, ()), *(BLOCK + block for block in folders)))
            except InstallerFailed as failed:
                more = conflicting(pins, str(failed)) - freed
                if failed.fault is not Fault.UNSATISFIABLE or not more:
                    raise
                freed |= more

    def _compile(self, requirements: Sequence[str], more: Sequence[str]) -> str:
        torch = next((line for line in requirements if re.match(r"torch\s*=", line)), "")
        how = ("--directory", str(self.source), "--python", str(self.interpreter), *_index(torch))
        return self.installer.lock(self.source, (*requirements, *self.packages), *more, *how)


def _torch(release: str, before: str) -> str:
    """From the same index as before: a local part names its build, and `===` lets none stand in where there is none."""
    if release.count(".") < 2:  # noqa: PLR2004 - the last one of that minor version
        return f"torch=={release}.*"
    local = Version(before).local
    return f"torch=={release}+{local}" if local and "+" not in release else f"torch==={release}"


def _index(torch: str) -> tuple[str, ...]:
    """The options for the index that has its local part; none for the default one."""
    backend = re.search(r"\+(cpu|cu\d+|rocm[\d.]+|xpu)\b", torch)
    return ("--torch-backend", backend[1]) if backend else ()


def packages_in(lock: str) -> list[dict[str, Any]]:
    return list(tomllib.loads(lock).get("packages", ()))


def versions_in(lock: str) -> dict[str, str]:
    """Of all that comes from an index. Raises BadRequest where torch does not."""
    listed = (each for each in packages_in(lock) if not each.keys() & {*_OWN_SOURCES})
    versions = {str(each["name"]): str(each["version"]) for each in listed}
    if "torch" not in versions:
        raise BadRequest(
            "the project's environment holds no torch; name what states it with --lock, --extra or --with torch"
        )
    return versions


def _requirement(package: dict[str, Any]) -> str:
    """Exactly that, for uv."""
    if "vcs" in package:
        vcs = package["vcs"]
        return f"{package['name']} @ {vcs['type']}+{vcs['url']}@{vcs['commit-id']}"
    if "archive" in package:
        return f"{package['name']} @ {package['archive'].get('url') or package['archive']['path']}"
    if "directory" in package:
        return f"-e ./{package['directory']['path']}"
    return f"{package['name']}==={package['version']}"


def size_of(locks: Iterable[str], cache: Path) -> tuple[int, int]:
    """Bytes to download, and then on disk, for what uv has not unpacked yet; what no index tells is not counted."""
    packages = [package for lock in locks for package in packages_in(lock)]
    wheels = {wheel["hashes"].get("sha256"): wheel for each in packages for wheel in each.get("wheels", ())[:1]}
    cached = find_cached(cache, {str(each["name"]) for each in packages})
    missing = sum(wheel.get("size", 0) for hash_, wheel in wheels.items() if hash_ not in cached)
    return missing, int(missing * UNPACKED)


def make_environment(checkout: Checkout, folder: Path, locker: Locker, lock: str) -> AdoptedEnvironment:
    """An environment with the project in it, as developers install it; one that is whole already is only looked at.

    Torch is imported once, which compiles what every run imports: the tests cannot write there. Raises InstallerFailed
    and ProvisionFailure.
    """
    python, done, project = folder / "bin" / "python", folder / "made", folder / "project"
    run = locker.installer.run
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        run("venv", "-q", "--python", str(locker.interpreter), str(folder))
        checkout.copy(project)
        pins, torch = folder / "pins.txt", folder / "torch.txt"  # tests do not see the first, which may name hosts
        pins.write_text(
            "\n".join(_requirement(each) for each in packages_in(lock) if "directory" not in each), encoding="utf-8"
        )
        torch.write_text(f"torch=={versions_in(lock)['torch']}\n", encoding="utf-8")
        how = ("-q", "--no-deps", "--python", str(python), "--build-constraints", str(torch))
        run("pip", "install", *how, *_index(versions_in(lock)["torch"]), "-r", str(pins))
        ask_program((str(python), "-c", "import torch"), locker.installer.environ, timeout_s=_IMPORT_S)
        own = {project / each["directory"]["path"] for each in packages_in(lock) if "directory" in each}
        own |= {project} if any((project / name).exists() for name in BUILT) else set()
        if own:
            run("pip", "install", *how, *(f"--editable={one}" for one in sorted(own)))
        done.touch()
    wanted = versions_in(lock)["torch"]
    found = inspect_interpreter(python, locker.installer.environ, locker.installer.observer)
    if Version(found.imported["torch"]).public != Version(wanted).public:
        raise ProvisionFailure(wrong_build_trouble(f"torch {found.imported['torch']} is imported, and not {wanted}"))
    return found


def locker_for(
    checkout: Checkout, installer: Installer, interpreter: Path, source: Path, needs: Sequence[Sequence[str]]
) -> Locker:
    """`needs` are the packages, extras and groups of its tests. Builds are told the version that git would tell."""
    checkout.copy(source)
    index = replace(installer.index, variables={**installer.index.variables, **checkout.variables})
    return Locker(replace(installer, given_index=index), interpreter, source, *map(tuple, needs))
