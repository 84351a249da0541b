"""The lock of a build and an issue's packages: resolved once and kept.

The resolution is that of the build's date: what that release's users got, not what the index holds today. A lock is a
pylock.toml (PEP 751) as uv wrote it. It names hosts, so it lives in the database and beside the environment, never in
the repository.
"""

import json
import platform
import re
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from knowngood.domain.builds.build import Build
from knowngood.domain.errors import KnownGoodError
from knowngood.domain.issue import EnvironmentRequest, digest
from knowngood.domain.issue_selectors import REQUIREMENT_NAME
from knowngood.domain.verdicts.outcome import Trouble, TroubleCode
from knowngood_workers.common.files import write_whole
from knowngood_workers.provision.uv_cli import Fault, Installer, InstallerFailed, ProcessObserver

BLOCK = "[[packages]]\n"
"""The head of a package in a pylock.toml as uv writes it."""

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s\"']+@")
_TRITON = ("triton", "pytorch-triton")


@dataclass(frozen=True)
class Wheel:
    """One package of the lock. `hashes` are SHA-256; `size` is in bytes, None where the index does not tell it.

    `url` is where the index keeps it; `is_direct` means that the requirement itself named this address.
    """

    name: str
    version: str
    url: str
    hashes: tuple[str, ...]
    size: int | None = None
    is_direct: bool = False

    @property
    def key(self) -> str:
        """The same bytes have the same key, whichever index they came from."""
        return digest(",".join(sorted(self.hashes)))

    @property
    def pin(self) -> str:
        return f"{self.name} @ {self.url}" if self.is_direct else f"{self.name}==={self.version}"


@dataclass(frozen=True)
class Lock:
    text: str
    wheels: tuple[Wheel, ...]

    @property
    def digest(self) -> str:
        return digest(self.text)

    def find(self, *names: str) -> Wheel | None:
        return next((wheel for wheel in self.wheels if wheel.name in names), None)


def read_lock(text: str) -> Lock:
    """Raises ValueError where it holds something that cannot be installed by hash, such as a source archive."""
    wheels = tuple(_read_wheel(package) for package in tomllib.loads(text).get("packages", ()))
    return Lock(text=text, wheels=wheels)


def _read_wheel(package: Mapping[str, object]) -> Wheel:
    name = canonicalize_name(str(package["name"]))
    wheels, archive = package.get("wheels"), package.get("archive")
    files = wheels if isinstance(wheels, list) else [archive] if isinstance(archive, dict) else []
    hashes = tuple(str(file["hashes"]["sha256"]) for file in files if "sha256" in file.get("hashes", {}))
    if not hashes or len(hashes) != len(files):
        raise ValueError(f"{name} has no wheel with a SHA-256 in the lock")
    size = files[0].get("size") if len(files) == 1 else None
    return Wheel(
        name=name,
        version=str(package.get("version", "")),
        url=str(files[0].get("url") or files[0].get("path") or ""),
        hashes=hashes,
        size=size if isinstance(size, int) else None,
        is_direct=not isinstance(wheels, list),
    )


def compose_lock(main: str, bare: str, *, comment: str) -> str:
    """One lock out of two: `main`, and `bare` whose packages are wanted without their dependencies.

    Where both name a package, `bare` wins. Credentials are cut out of every address; `comment` goes on top.
    """
    head, *blocks = main.split(BLOCK)
    added = bare.split(BLOCK)[1:]
    named = {_package_of(block) for block in added}
    unchanged = [block for block in blocks if _package_of(block) not in named]
    body = "\n\n".join(part.strip("\n") for part in (head, *(BLOCK + block for block in (*unchanged, *added))))
    header = "".join(f"# {line}\n" for line in comment.splitlines())
    return f"{header}{_CREDENTIALS.sub('', body)}\n"


def _package_of(block: str) -> str:
    return str(tomllib.loads(block)["name"])


def print_pins(lock: Lock) -> str:
    """The lock as hashed requirements, which is how it is installed.

    `uv pip sync pylock.toml` would do it too, but it looks up wheels by their address instead of their index: behind a
    mirror without cache headers every environment downloaded all its wheels anew (3 GB, 33 to 60 s for torch 2.6.0
    instead of 0.6 s; uv 0.13.8, measured 2026-11).
    """
    return "".join(
        f"{wheel.pin} {' '.join(f'--hash=sha256:{hash_}' for hash_ in wheel.hashes)}\n" for wheel in lock.wheels
    )


def wrong_build(lock: Lock, build: Build) -> str | None:
    """Say how what was resolved differs from `build`; None where it does not.

    A wheel's version may lack the local part that its import shows (2.6.0 on the default index says 2.6.0+cu124), but a
    different local part is a different build: a local `+cpu` wheel never stands in for a CUDA one.
    """
    torch = lock.find("torch")
    if torch is None:
        return "the resolution holds no torch"
    if not _is_same(torch.version, build.torch):
        return f"torch {torch.version} was resolved where {build.torch} was asked for"
    triton = lock.find(*_TRITON)
    if build.triton and triton is not None and not _is_same(triton.version, build.triton):
        return f"triton {triton.version} was resolved where {build.triton} was asked for"
    return None


def _is_same(actual: str, wanted: str) -> bool:
    try:
        have, want = Version(actual), Version(wanted)
    except InvalidVersion:
        return actual == wanted
    return have.public == want.public and have.local in {None, want.local}


# Raised whenever the same request would be provisioned or sealed differently: old environments are then left to age.
_RECIPE = 1

# Torch before 2.7 needs setuptools when Inductor compiles, and numpy for its tensors' bridge; neither is required by
# its wheel. Without them a naive runner reports failures that are not the issue's (measured 2026-11).
_ALWAYS = ("numpy", "setuptools")

# Small, pure Python, on every index that mirrors anything, and older than any build here.
_KNOWN_GOOD = "packaging"

_FILTERED = "was filtered by `exclude-newer`"


class ProvisionFailure(KnownGoodError):
    """No environment could be made. `trouble` says which kind of failure, and what to do about it."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.sentence)
        self.trouble = trouble


def environment_key(build: Build, request: EnvironmentRequest) -> str:
    """The digest of all that decides what gets installed."""
    parts = [request.digest, build.requirement, build.torch, build.triton, build.pinned_triton, build.python]
    return digest(json.dumps([_RECIPE, *parts, build.origin, build.as_of.isoformat()]))


def requirements_of(build: Build, request: EnvironmentRequest) -> tuple[str, ...]:
    """The requirements for uv.

    `===` lets no local version stand in: `==2.13.0` is satisfied by a `2.13.0+cpu` in a find-links folder, and uv
    prefers it (measured 2026-11). A wheel from a torch backend's index has its local part in its name.
    """
    torch = build.requirement if build.origin == "default" else build.torch
    named = {_name_of(text) for text in (*request.requirements, *request.no_deps)}
    return (f"torch==={torch}", *(name for name in _ALWAYS if name not in named), *request.requirements)


def _name_of(requirement: str) -> str:
    match = REQUIREMENT_NAME.match(requirement)
    return canonicalize_name(match[1]) if match else requirement


def backend_of(build: Build, wheel_folders: tuple[Path, ...]) -> tuple[str, ...]:
    """The options that send torch's family to PyTorch's own index; none for the default index, and none where a local
    folder holds this very wheel, so that a site without that index can serve it.
    """
    if build.origin == "default" or any(
        _is_wheel_of(build, path) for folder in wheel_folders for path in folder.glob("torch-*.whl")
    ):
        return ()
    return ("--torch-backend", build.origin)


def _is_wheel_of(build: Build, path: Path) -> bool:
    try:
        name, version, _, tags = parse_wheel_filename(path.name)
    except InvalidWheelFilename:
        return False
    interpreters = {tag.interpreter for tag in tags}
    return name == "torch" and str(version) == build.torch and f"cp{build.python.replace('.', '')}" in interpreters


@dataclass(frozen=True)
class Resolver:
    """Locks by environment key in `root`; they outlive their environments, so that these can be made again offline.

    `platform` is what uv calls the machine that is resolved for.
    """

    root: Path
    installer: Installer
    platform: str = f"{platform.machine()}-manylinux_2_28"

    def load(self, key: str) -> Lock | None:
        try:
            return read_lock(self._path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError):
            return None

    def forget(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.root / f"{key}.toml"

    def resolve(self, build: Build, request: EnvironmentRequest, python: Path, observer: ProcessObserver) -> Lock:
        """The lock for `build` with `request`, from the store or made now. Raises ProvisionFailure."""
        key = environment_key(build, request)
        lock = self.load(key)
        if lock is None:
            lock = self._make(build, request, python, observer)
            write_whole(self._path(key), lock.text)
        return lock

    def _make(self, build: Build, request: EnvironmentRequest, python: Path, observer: ProcessObserver) -> Lock:
        with tempfile.TemporaryDirectory(prefix="knowngood-") as folder:
            run = _Compilation(self.installer, build, request, python, observer, Path(folder), self.platform)
            try:
                main = run.compile(requirements_of(build, request))
                bare = run.compile(request.no_deps, "--no-deps") if request.no_deps else ""
            except InstallerFailed as failed:
                raise ProvisionFailure(run.explain(failed)) from failed
        sources = ", ".join(self.installer.index.sources)
        comment = f"{build.id} with what was published up to {build.as_of.isoformat()}\nfrom: {sources}"
        try:
            lock = read_lock(compose_lock(main, bare, comment=comment))
        except ValueError as problem:
            raise ProvisionFailure(Trouble(TroubleCode.PROVISION_FAILED, str(problem))) from problem
        difference = wrong_build(lock, build)
        if difference:
            raise ProvisionFailure(wrong_build_trouble(difference))
        return lock


def wrong_build_trouble(difference: str) -> Trouble:
    advice = "another wheel stood in for it: look at the find-links and extra indexes of pip and uv on this machine"
    return Trouble(TroubleCode.WRONG_BUILD, f"{difference}; {advice}")


@dataclass(frozen=True)
class _Compilation:
    """One question to uv's resolver and the answers that help to understand a failure of it."""

    installer: Installer
    build: Build
    request: EnvironmentRequest
    python: Path
    observer: ProcessObserver
    folder: Path
    platform: str

    def compile(self, requirements: tuple[str, ...], *more: str) -> str:
        options = (*self._world(), *self._exempt(), *self._overrides(), *more)
        return self.installer.lock(self.folder, requirements, *options, observer=self.observer)

    def _world(self) -> tuple[str, ...]:
        """The machine and the date that are resolved for. A bare date would mean midnight of this host's time zone."""
        return (
            "--only-binary=:all:",
            f"--python={self.python}",
            f"--python-version={self.build.python}",
            f"--python-platform={self.platform}",
            f"--exclude-newer={self.build.as_of.isoformat()}T23:59:59Z",
            *backend_of(self.build, self.installer.index.wheel_folders),
        )

    def _exempt(self) -> tuple[str, ...]:
        """A package asked for by exact version is wanted whatever its date: its version says more than the date."""
        names = {_name_of(name) for name in self.request.pins}
        return tuple(f"--exclude-newer-package={name}=false" for name in sorted(names))

    def _overrides(self) -> tuple[str, ...]:
        if not self.build.is_mismatched or self.build.triton is None:
            return ()
        path = self.folder / "overrides.txt"
        path.write_text(f"triton=={self.build.triton}\n", encoding="utf-8")
        return ("--overrides", str(path))

    def explain(self, failed: InstallerFailed) -> Trouble:
        """The trouble behind a failed resolution. That a package does not exist is believed only of an index that
        works.
        """
        if failed.fault is Fault.UNSATISFIABLE:
            hidden = self._hidden_cause(failed)
            packages = ", ".join(self.request.packages)
            missing = f"no such build with {packages}" if packages else "no such build"
            return hidden or Trouble(TroubleCode.NO_BUILD, f"{missing}: {failed}")
        return trouble_of(failed, origin=self.build.origin)

    def _hidden_cause(self, failed: InstallerFailed) -> Trouble | None:
        if not (failed.is_doubtful or _FILTERED in str(failed)):
            return None
        if self.installer.index.no_index:
            return Trouble(
                TroubleCode.INDEX_UNREACHABLE,
                f"this machine takes packages from local folders only (no-index), and they lack one: {failed}",
            )
        try:
            self.compile((_KNOWN_GOOD,))
        except InstallerFailed as second:
            if second.fault is Fault.UNSATISFIABLE and _FILTERED in str(second):
                return Trouble(
                    TroubleCode.PROVISION_FAILED,
                    "the package index tells no upload times (PEP 700), so that the packages of "
                    f"{self.build.as_of.isoformat()} cannot be chosen; use an index that does",
                )
            return Trouble(
                TroubleCode.INDEX_UNREACHABLE,
                f"the package index does not even know `{_KNOWN_GOOD}`; check its address and credentials: {failed}",
            )
        return None


def trouble_of(failed: InstallerFailed, *, origin: str = "default") -> Trouble:
    """The trouble behind a failure of uv that says nothing about the build."""
    code, sentence = _FAULTS.get(failed.fault, (TroubleCode.PROVISION_FAILED, "uv failed"))
    if failed.fault is Fault.UNREACHABLE and origin != "default":
        sentence = (
            f"{origin} wheels come from PyTorch's own index, which cannot be reached from here; allow it, put the "
            "wheel into a find-links folder, or measure on another machine"
        )
    return Trouble(code, f"{sentence}: {failed}")


_FAULTS = {
    Fault.UNREACHABLE: (
        TroubleCode.INDEX_UNREACHABLE,
        "the package index cannot be reached; check network, proxy and credentials",
    ),
    Fault.UNTRUSTED: (
        TroubleCode.INDEX_UNREACHABLE,
        (
            "uv does not trust the certificate of the package index, as behind a proxy that inspects TLS; set "
            "UV_SYSTEM_CERTS=1, or SSL_CERT_FILE to a file that holds the proxy's certificate"
        ),
    ),
    Fault.DISK_FULL: (
        TroubleCode.DISK_FULL,
        "the disk is full; free some space or lower the limit for environments",
    ),
}
