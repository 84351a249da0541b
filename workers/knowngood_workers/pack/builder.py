"""Make a pack: all that a machine without network needs to run issues on builds, in parts that can be carried.

A pack holds wheels, locks, the catalogue and the worker itself; `unpack` says how it is laid out and reads it.
Bytes stream from the index into the parts (`part_writer`), so that memory stays small however large the pack.
"""

import base64
import hashlib
import io
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib.metadata import distribution, distributions
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import knowngood
from knowngood.data_dir import shipped_folder
from knowngood.domain.builds.build import Build
from knowngood.domain.errors import BadPack, BadRequest
from knowngood.domain.issue import EnvironmentRequest
from knowngood.serialization.lock_keys import without_addresses
from knowngood_workers.common.files import write_whole
from knowngood_workers.pack import unpack
from knowngood_workers.pack.part_writer import PartWriter, fetch
from knowngood_workers.provision.resolver import Lock, ProvisionFailure, Resolver, Wheel, environment_key, read_lock
from knowngood_workers.provision.uv_cli import Installer, InstallerFailed, ProcessObserver

PRODUCT = "knowngood"
_WORKERS = Path(__file__).resolve().parents[1]
_REPROS = shipped_folder("repros")
_SOURCES = {
    PRODUCT: Path(knowngood.__file__).resolve().parent,
    _WORKERS.name: _WORKERS,
    f"{PRODUCT}/repros": _REPROS,
    f"{PRODUCT}/migrations": shipped_folder("migrations"),
}
_PLATFORMS = {"manylinux_2_28_x86_64": "x86_64-manylinux_2_28", "manylinux_2_28_aarch64": "aarch64-manylinux_2_28"}

Tell = Callable[[str], None]


@dataclass(frozen=True)
class OpenedPack:
    """A pack that was checked and unpacked on this machine: `folder` holds its files."""

    id: str
    folder: Path
    builds: tuple[str, ...]
    issues: tuple[str, ...]
    catalogue: tuple[Path, ...]

    def holds(self, environment: str) -> bool:
        """Whether the environment of this key (see resolve) can be made of the pack."""
        return (self.folder / "locks" / f"{environment}.toml").exists()

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        """`environ` in which packages come from the pack and from nowhere else, whatever this machine is set to."""
        others = {name: value for name, value in environ.items() if not name.startswith(("UV_", "PIP_"))}
        wheels = str(self.folder / "wheels")
        return {**others, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": wheels}


def open_pack(pack: Path, root: Path, *, tell: Tell) -> OpenedPack:
    """Check and unpack a pack below `root`, where an installation keeps its data. Raises BadPack."""
    try:
        manifest = unpack.read_manifest(pack)
        target = root / "packs" / manifest["id"]
        unpack.unpack(pack, target, tell)
    except unpack.PackProblem as problem:
        raise BadPack(str(problem)) from None
    except OSError as problem:
        raise BadPack(f"the pack cannot be unpacked below {root}: {problem.strerror or problem}") from None
    if manifest["expected"] and not (target / unpack.REWRAPPED).exists():
        raise BadPack(f"the pack counts on packages that are installed here; start it with python3 {pack}/run.py")
    for lock in sorted((target / "locks").glob("*.toml")):
        write_whole(root / "locks" / lock.name, lock.read_text(encoding="utf-8"))
    for what, reason in manifest["left_out"].items():
        tell(f"not in the pack: {what}: {reason}")
    return OpenedPack(
        id=manifest["id"],
        folder=target,
        builds=tuple(manifest["builds"]),
        issues=tuple(manifest["issues"]),
        catalogue=tuple(target / folder for folder in manifest["catalogue"]),
    )


def read_installed(file: Path) -> frozenset[tuple[str, str]]:
    """(canonical name, version) of each line `name==version` of what `pip freeze` prints. Raises BadRequest."""
    installed = set()
    for line in file.read_text(encoding="utf-8").splitlines():
        name, is_exact, version = line.partition("#")[0].strip().partition("==")
        if is_exact:
            installed.add((canonicalize_name(name), version))
    if not installed:
        raise BadRequest(f"{file} names nothing installed; it takes lines name==version, as `pip freeze` prints them")
    return frozenset(installed)


@dataclass(frozen=True)
class PackRequest:
    """A pack to make. `pairs` are builds with what their issues need; `folders` are those of the catalogue.

    `excluded` holds (canonical name, version) of what is installed where the pack goes: its wheels stay out, and are
    made there out of what is installed.
    """

    pairs: Sequence[tuple[Build, EnvironmentRequest]]
    builds: Sequence[str]
    issues: Sequence[str]
    folders: Sequence[Path]
    python: str
    platform: str
    part_bytes: int
    excluded: Collection[tuple[str, str]] = ()


@dataclass(frozen=True)
class PackResult:
    """The pack that was made: parts in all, files added now, and why a build cannot be packed, by build."""

    folder: Path
    parts: int
    files: int
    bytes: int
    left_out: Mapping[str, str]


def make_pack(folder: Path, wanted: PackRequest, installer: Installer, *, now: datetime, tell: Tell) -> PackResult:
    """Make or extend the pack in `folder`. Raises BadPack; what was packed until then is kept and gone on with.

    The catalogue is read once, first: somebody may edit it during the minutes that the wheels take.
    """
    platform = _PLATFORMS.get(wanted.platform)
    if platform is None:
        raise BadPack(f"--platform {wanted.platform} is not known; known: {', '.join(_PLATFORMS)}")
    catalogue = _catalogue_files(wanted.folders)
    with tempfile.TemporaryDirectory(prefix="knowngood-") as scratch:
        locks, left_out = _resolve(wanted, Resolver(Path(scratch) / "locks", installer, platform), tell)
        if not locks:
            raise BadPack(f"nothing to pack: {'; '.join(left_out.values()) or 'no issue applies to these builds'}")
        own = _resolve_worker(wanted, installer, platform, Path(scratch))
    distinct = {wheel.key: wheel for lock in locks.values() for wheel in lock.wheels}.values()
    there = [wheel for wheel in distinct if (wheel.name, wheel.version) in wanted.excluded]
    wheels = [
        *(("worker", wheel) for wheel in own.wheels),
        *(("wheels", wheel) for wheel in distinct if wheel not in there),
    ]
    with PartWriter(folder, wanted.part_bytes, _new_manifest(wanted, now)) as writer:
        bare_locks = [(f"locks/{key}.toml", without_addresses(lock.text).encode()) for key, lock in locks.items()]
        for path, content in (_own_wheel(), *bare_locks, *catalogue):
            writer.put(path, content)
        _put_wheels(writer, wheels, installer.variables(), tell)
        writer.finish(_final_manifest(writer.manifest, wanted, [path for path, _ in catalogue], there, left_out))
        return PackResult(folder, len(writer.parts), len(writer.added), sum(writer.added), left_out)


def _put_wheels(
    writer: PartWriter, wheels: Sequence[tuple[str, Wheel]], variables: Mapping[str, str], tell: Tell
) -> None:
    for number, (place, wheel) in enumerate(wheels, start=1):
        path = f"{place}/{unquote(urlsplit(wheel.url).path.rpartition('/')[2])}"
        if not writer.holds(path, wheel.hashes[0]):
            tell(f"wheel {number} of {len(wheels)}: {wheel.name} {wheel.version}")
            writer.stream(path, wheel.hashes[0], partial(fetch, wheel.url, variables))


def _new_manifest(wanted: PackRequest, now: datetime) -> dict[str, Any]:
    """The first fields of a new pack's manifest; `python` and `platform` of an earlier one must be the same."""
    return {
        "format": unpack.FORMAT,
        "version": unpack.VERSION,
        "product": PRODUCT,
        "id": uuid4().hex[:12],
        "created_at": now.isoformat(),
        "python": wanted.python,
        "platform": wanted.platform,
    }


def _final_manifest(
    earlier: Mapping[str, Any],
    wanted: PackRequest,
    catalogue: Sequence[str],
    there: Sequence[Wheel],
    left_out: Mapping[str, str],
) -> dict[str, Any]:
    """The manifest's fields besides parts and files; an extended pack is for all that it was ever made for.

    `catalogue` are the paths of the catalogue's files in the pack.
    """
    expected = {*map(tuple, earlier.get("expected", ())), *((wheel.name, wheel.version) for wheel in there)}
    return {
        "made_by": distribution(PRODUCT).version,
        "builds": sorted({*earlier.get("builds", ()), *wanted.builds}),
        "issues": sorted({*earlier.get("issues", ()), *wanted.issues}),
        "catalogue": sorted({"/".join(path.split("/")[:3]) for path in catalogue}),
        "expected": sorted(map(list, expected)),
        "left_out": {**earlier.get("left_out", {}), **left_out},
    }


def _resolve(wanted: PackRequest, resolver: Resolver, tell: Tell) -> tuple[dict[str, Lock], dict[str, str]]:
    """The lock of every environment by its key; and what has none, with the reason."""
    locks: dict[str, Lock] = {}
    left_out: dict[str, str] = {}
    for build, request in wanted.pairs:
        name = " with ".join((build.id, *([", ".join(request.packages)] if request.packages else [])))
        tell(f"resolving {name}")
        try:
            lock = resolver.resolve(build, request, Path(sys.executable), ProcessObserver())
        except ProvisionFailure as failure:
            left_out[name] = failure.trouble.sentence
            continue
        if any(wheel.is_direct for wheel in lock.wheels):
            left_out[name] = "it asks for a file by its address, and the machine that the pack is for reaches none"
        else:
            locks[environment_key(build, request)] = lock
    return locks, left_out


def _resolve_worker(wanted: PackRequest, installer: Installer, platform: str, scratch: Path) -> Lock:
    """The lock of the worker's own dependencies there, in the versions that it has here."""
    here = scratch / "here.txt"
    here.write_text("\n".join(f"{package.name}=={package.version}" for package in distributions()), encoding="utf-8")
    world = ("--python-version", wanted.python, "--python-platform", platform)
    try:
        return read_lock(installer.lock(scratch, _requirements(), "--only-binary", ":all:", "-c", str(here), *world))
    except InstallerFailed as failed:
        raise BadPack(f"the worker cannot be packed for Python {wanted.python}: {failed}") from failed


def _catalogue_files(folders: Sequence[Path]) -> list[tuple[str, bytes]]:
    """The catalogue's files under a folder named by their content: another state never mixes with an earlier one."""
    files = [
        (f"{number}/{path.relative_to(folder)}", path.read_bytes())
        for number, folder in enumerate(folders)
        for path in sorted([*folder.glob("builds.toml"), *folder.glob("*/issue.toml"), *folder.glob("*/repro.py")])
    ]
    state = hashlib.sha256(b"".join(name.encode() + content for name, content in files)).hexdigest()[:12]
    return [(f"catalogue/{state}/{name}", content) for name, content in files]


def _own_wheel() -> tuple[str, bytes]:
    """A wheel of the release that runs here, also where it runs from a checkout."""
    own = distribution(PRODUCT)
    info = f"{PRODUCT}-{own.version}.dist-info"
    files = {
        f"{place}/{path.relative_to(folder)}": path.read_bytes()
        for place, folder in _SOURCES.items()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and _REPROS / "evidence" not in path.parents
    }
    files[f"{info}/METADATA"] = _metadata(own.read_text("METADATA") or "").encode()
    files[f"{info}/entry_points.txt"] = (own.read_text("entry_points.txt") or "").encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: knowngood\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    return f"worker/{PRODUCT}-{own.version}-py3-none-any.whl", zip_wheel(files, f"{info}/RECORD")


def _requirements() -> list[str]:
    """The worker's packages: this release's extra `server`."""
    requirements = map(Requirement, distribution(PRODUCT).requires or ())
    return [
        f"{requirement.name}{requirement.specifier}"
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({"extra": "server"})
    ]


def _metadata(text: str) -> str:
    """The worker's metadata in a pack: what its extra needs is always needed there, so it has no extra."""
    head, blank, description = text.partition("\n\n")
    lines = [line for line in head.splitlines() if not line.startswith(("Requires-Dist:", "Provides-Extra:"))]
    return (
        "\n".join([*lines, *(f"Requires-Dist: {requirement}" for requirement in _requirements())]) + blank + description
    )


def zip_wheel(files: Mapping[str, bytes], record: str) -> bytes:
    """A wheel of these files, with their RECORD; the same files give the same bytes."""
    rows = [f"{name},sha256={record_hash(content)},{len(content)}" for name, content in files.items()]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**files, record: "\n".join([*rows, f"{record},,", ""]).encode()}.items():
            archive.writestr(zipfile.ZipInfo(name, date_time=(2020, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def record_hash(content: bytes) -> str:
    """SHA-256 as RECORD has it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
