"""One environment made from its lock: venv, wheels, bytecode, and the proof of what it imports."""

import re
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from packaging.utils import canonicalize_name

from knowngood.app.domain.builds.build import Build, difference
from knowngood.app.domain.issue import EnvironmentRequest
from knowngood.workers.provision.bytecode_cache import BytecodeStore, bytecode_files, bytecode_tag, compile_sources
from knowngood.workers.provision.environment_cache import EnvironmentRecord
from knowngood.workers.provision.import_probe import Proofs, import_torch
from knowngood.workers.provision.pylock import Lock, print_pins
from knowngood.workers.provision.resolver import ProvisionFailure, backend_of, wrong_build_trouble
from knowngood.workers.provision.site_packages import (
    Distribution,
    Seal,
    close_folders,
    find_distributions,
    seal,
    site_of,
)
from knowngood.workers.provision.uv_cli import Installer, InstallerFailed, Watch
from knowngood.workers.provision.wheel_integrity import WheelSeals

OnProgress = Callable[[str, str, int, int], None]

_ANNOUNCED = re.compile(r"^\s*Downloading (?P<name>\S+) \((?P<number>[\d.]+)(?P<unit>[KMG]iB)\)")
_DONE = re.compile(r"^\s*Downloaded (?P<name>\S+)")
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True)
class Order:
    """What to make and where. `interpreter` is the machine's Python; `key` names the environment."""

    build: Build
    request: EnvironmentRequest
    key: str
    interpreter: Path
    lock: Lock
    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site(self) -> Path:
        return site_of(self.folder, self.build.python)

    @property
    def tag(self) -> str:
        return bytecode_tag(self.build.python)


@dataclass
class Downloads:
    """uv's progress in bytes. It announces a wheel when it begins with it, so `total` may still grow."""

    on_progress: OnProgress
    sizes: dict[str, int] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)

    def read(self, line: str) -> None:
        begun, ended = _ANNOUNCED.match(line), _DONE.match(line)
        if begun:
            self.sizes[begun["name"]] = int(float(begun["number"]) * _UNITS[begun["unit"]])
        elif ended:
            self.done.add(ended["name"])
        else:
            return
        done = sum(size for name, size in self.sizes.items() if name in self.done)
        name = (begun or ended or {"name": ""})["name"]
        self.on_progress("sync", f"{'fetching' if begun else 'fetched'} {name}", done, sum(self.sizes.values()))


class EditedCache(Exception):
    """Unpacked wheels of uv's cache were edited through an environment; `inodes` tell which. Forgotten, they heal."""

    def __init__(self, edited: list[Distribution]) -> None:
        super().__init__(", ".join(one.name for one in edited))
        self.inodes = {inode for inode in (one.inode() for one in edited) if inode is not None}


@dataclass(frozen=True)
class Assembler:
    installer: Installer
    bytecode: BytecodeStore
    proofs: Proofs
    wheel_seals: WheelSeals

    def assemble(self, order: Order, watch: Watch, on_progress: OnProgress) -> EnvironmentRecord:
        """Make the environment in `order.folder` and say what it is. Raises ProvisionFailure, InstallerFailed,
        EditedCache and OSError; what is left in the folder then is for the caller to remove.
        """
        began = monotonic()
        on_progress("sync", f"{len(order.lock.wheels)} packages", 0, 0)
        self._make_venv(order)
        with ThreadPoolExecutor(1) as side:
            # While uv links torch on one core. In one thread: two that wait for Python's lock slow uv down as well.
            laying, looking = side.submit(self._lay_bytecode, order), side.submit(self._look, order)
            self._sync(order, watch, on_progress)
            found = find_distributions(order.site)
            wheels = {wheel.key: found[wheel.name] for wheel in order.lock.wheels if wheel.name in found}
            sealing = side.submit(self._seal, order, wheels, looking.result())
            laid = laying.result()
            compiled = self._compile_rest(order, wheels, laid, watch, on_progress)
            imported = self._prove(order, found, watch, on_progress)
            sealed, edited = sealing.result()
        if edited:
            raise EditedCache(edited)
        wrong = difference(order.build, imported, order.request.pins)
        if wrong:
            raise ProvisionFailure(wrong_build_trouble(wrong))
        if not order.request.mutates:
            close_folders(order.site, sealed.folders)
        seals = {} if order.request.mutates else replace(sealed, bytecode=seal(order.site).bytecode).of_environment
        return self._describe(order, {**laid, **compiled}, imported, seals, monotonic() - began)

    def _make_venv(self, order: Order) -> None:
        """As `uv venv` makes it, without its scripts for shells and in 1 ms instead of 25."""
        order.site.mkdir(parents=True)
        order.python.parent.mkdir()
        order.python.symlink_to(order.interpreter)
        for name in ("python3", f"python{order.build.python}"):
            order.python.with_name(name).symlink_to(order.python.name)
        (order.folder / "lib64").symlink_to("lib")
        config = f"home = {order.interpreter.parent}\ninclude-system-site-packages = false\n"
        (order.folder / "pyvenv.cfg").write_text(config, encoding="utf-8")
        (order.folder / "pylock.toml").write_text(order.lock.text, encoding="utf-8")
        (order.folder / "pins.txt").write_text(print_pins(order.lock), encoding="utf-8")

    def _sync(self, order: Order, watch: Watch, on_progress: OnProgress) -> None:
        """Install the lock: first from uv's cache alone, which asks no index and fails in 0.1 s if one is missing."""
        mode = "copy" if order.request.mutates else "hardlink"
        pins = ("pip", "sync", str(order.folder / "pins.txt"), "--require-hashes", "--only-binary", ":all:")
        backend = backend_of(order.build, self.installer.index.wheel_folders)
        command = (*pins, *backend, "--link-mode", mode, "--python", str(order.python))
        try:
            self.installer.run(*command, "-q", "--offline", watch=watch)
        except InstallerFailed:
            lines = Downloads(on_progress)
            self.installer.run(*command, watch=Watch(lines.read, watch.is_cancelled, watch.inherited))

    def _look(self, order: Order) -> dict[tuple[int, int], Seal]:
        return {} if order.request.mutates else self.wheel_seals.look(wheel.key for wheel in order.lock.wheels)

    def _seal(
        self, order: Order, wheels: Mapping[str, Distribution], looked: Mapping[tuple[int, int], Seal]
    ) -> tuple[Seal, list[Distribution]]:
        if order.request.mutates:
            return Seal({}, ()), []  # copies, which no other environment sees and no other job is lent
        return self.wheel_seals.seal(order.site, wheels, looked)

    def _lay_bytecode(self, order: Order) -> dict[str, int]:
        laid = {}
        for wheel in order.lock.wheels:
            size = self.bytecode.lay(order.tag, wheel.key, order.site, copies=order.request.mutates)
            if size is not None:
                laid[wheel.key] = size
        return laid

    def _compile_rest(
        self,
        order: Order,
        wheels: Mapping[str, Distribution],
        laid: Mapping[str, int],
        watch: Watch,
        on_progress: OnProgress,
    ) -> dict[str, int]:
        fresh = {key: one for key, one in wheels.items() if key not in laid}
        sources = [source for one in fresh.values() for source in bytecode_files(one, order.tag)]
        if sources:
            on_progress("compile", f"{len(sources)} files", 0, 0)
            compile_sources(order.python, order.site, sources, env=self._environ(), watch=watch)
        copies = order.request.mutates
        return {key: self.bytecode.keep(order.tag, key, one, copies=copies) for key, one in fresh.items()}

    def _prove(
        self, order: Order, found: Mapping[str, Distribution], watch: Watch, on_progress: OnProgress
    ) -> dict[str, str]:
        """What a process in the environment imports, with the versions of the pinned extra packages."""
        imported = self.proofs.find(order.lock, order.interpreter)
        if imported is None:
            on_progress("probe", "importing torch", 0, 0)
            imported = import_torch(order.python, self._environ(), watch)
            self.proofs.keep(order.lock, order.interpreter, imported)
        extra = {name: found.get(canonicalize_name(name.partition("[")[0])) for name in order.request.pins}
        return {**imported, **{name: one.version if one else "" for name, one in extra.items()}}

    def _environ(self) -> dict[str, str]:
        """What a process of the build sees of our environment here: enough to run, no secret, no GPU."""
        passed = {name: value for name, value in self.installer.environ.items() if name in {"PATH", "LANG", "LC_ALL"}}
        return {**passed, "HOME": tempfile.gettempdir(), "CUDA_VISIBLE_DEVICES": ""}

    def _describe(
        self,
        order: Order,
        sizes: Mapping[str, int],
        imported: Mapping[str, str],
        seals: Mapping[str, str],
        seconds: float,
    ) -> EnvironmentRecord:
        is_edited = order.request.mutates
        found = find_distributions(order.site)
        return EnvironmentRecord(
            key=order.key,
            build=order.build.id,
            python=order.build.python,
            interpreter=str(order.interpreter),
            lock_digest=order.lock.digest,
            packages={one.name: one.version for one in found.values()},
            imported=imported,
            sources=self.installer.index.sources,
            wheels={} if is_edited else sizes,
            own_bytes=sum(sizes.values()) if is_edited else 0,
            seals=seals,
            seconds=round(seconds, 3),
        )
