"""One environment made from its lock: venv, wheels, bytecode, and the proof of what it imports."""

import re
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from packaging.utils import canonicalize_name

from knowngood.domain.builds.build import Build, difference
from knowngood.domain.issue import EnvironmentRequest
from knowngood.domain.message import english
from knowngood_workers.provision.adopted_env import ImportCache, import_torch
from knowngood_workers.provision.bytecode_cache import BytecodeStore, bytecode_files, bytecode_tag, compile_sources
from knowngood_workers.provision.environment_cache import EnvironmentRecord
from knowngood_workers.provision.resolver import Lock, ProvisionFailure, backend_of, print_pins, wrong_build_trouble
from knowngood_workers.provision.site_packages import (
    Distribution,
    Seal,
    WheelSeals,
    close_folders,
    find_distributions,
    inodes_of,
    seal,
    site_of,
)
from knowngood_workers.provision.uv_cli import Installer, InstallerFailed, ProcessObserver

OnProgress = Callable[[str, str, int, int], None]

_ANNOUNCED = re.compile(r"^\s*Downloading (?P<name>\S+) \((?P<number>[\d.]+)(?P<unit>[KMG]iB)\)")
_DONE = re.compile(r"^\s*Downloaded (?P<name>\S+)")
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True)
class EnvironmentPlan:
    """An environment to make, and where. `interpreter` is the machine's Python; `key` names the environment."""

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


class EditedWheels(Exception):
    """Unpacked wheels of uv's cache were edited through an environment; `inodes` tell which. Forgotten, they heal."""

    def __init__(self, edited: list[Distribution]) -> None:
        super().__init__(", ".join(distribution.name for distribution in edited))
        self.inodes = inodes_of(edited)


@dataclass(frozen=True)
class EnvironmentBuilder:
    installer: Installer
    bytecode: BytecodeStore
    proofs: ImportCache
    wheel_seals: WheelSeals

    def assemble(self, plan: EnvironmentPlan, observer: ProcessObserver, on_progress: OnProgress) -> EnvironmentRecord:
        """Make the environment in `plan.folder` and say what it is. Raises ProvisionFailure, InstallerFailed,
        EditedWheels and OSError; what is left in the folder then is for the caller to remove.
        """
        began = monotonic()
        on_progress("sync", f"{len(plan.lock.wheels)} packages", 0, 0)
        self._make_venv(plan)
        with ThreadPoolExecutor(1) as side:
            # While uv links torch on one core. In one thread: two that wait for Python's lock slow uv down as well.
            laying, looking = side.submit(self._lay_bytecode, plan), side.submit(self._look, plan)
            self._sync(plan, observer, on_progress)
            distributions = find_distributions(plan.site)
            wheels = {wheel.key: distributions[wheel.name] for wheel in plan.lock.wheels if wheel.name in distributions}
            sealing = side.submit(self._seal, plan, wheels, looking.result())
            laid = laying.result()
            compiled = self._compile_rest(plan, wheels, laid, observer, on_progress)
            imported = self._prove(plan, distributions, observer, on_progress)
            sealed, edited = sealing.result()
        if edited:
            raise EditedWheels(edited)
        wrong = difference(plan.build, imported, plan.request.pins)
        if wrong:
            raise ProvisionFailure(wrong_build_trouble(english(wrong)))
        if not plan.request.mutates:
            close_folders(plan.site, sealed.folders)
        seals = {} if plan.request.mutates else replace(sealed, bytecode=seal(plan.site).bytecode).of_environment
        is_edited, sizes = plan.request.mutates, {**laid, **compiled}
        return EnvironmentRecord(
            key=plan.key,
            build=plan.build.id,
            python=plan.build.python,
            interpreter=str(plan.interpreter),
            lock_digest=plan.lock.digest,
            packages={distribution.name: distribution.version for distribution in distributions.values()},
            imported=imported,
            sources=self.installer.index.sources,
            wheels={} if is_edited else sizes,
            own_bytes=sum(sizes.values()) if is_edited else 0,
            seals=seals,
            seconds=round(monotonic() - began, 3),
        )

    def _make_venv(self, plan: EnvironmentPlan) -> None:
        """As `uv venv` makes it, without its scripts for shells and in 1 ms instead of 25."""
        plan.site.mkdir(parents=True)
        plan.python.parent.mkdir()
        plan.python.symlink_to(plan.interpreter)
        for name in ("python3", f"python{plan.build.python}"):
            plan.python.with_name(name).symlink_to(plan.python.name)
        (plan.folder / "lib64").symlink_to("lib")
        config = f"home = {plan.interpreter.parent}\ninclude-system-site-packages = false\n"
        (plan.folder / "pyvenv.cfg").write_text(config, encoding="utf-8")
        (plan.folder / "pylock.toml").write_text(plan.lock.text, encoding="utf-8")
        (plan.folder / "pins.txt").write_text(print_pins(plan.lock), encoding="utf-8")

    def _sync(self, plan: EnvironmentPlan, observer: ProcessObserver, on_progress: OnProgress) -> None:
        """Install the lock: first from uv's cache alone, which asks no index and fails in 0.1 s if one is missing."""
        mode = "copy" if plan.request.mutates else "hardlink"
        pins = ("pip", "sync", str(plan.folder / "pins.txt"), "--require-hashes", "--only-binary", ":all:")
        backend = backend_of(plan.build, self.installer.index.wheel_folders)
        command = (*pins, *backend, "--link-mode", mode, "--python", str(plan.python))
        try:
            self.installer.run(*command, "-q", "--offline", observer=observer)
        except InstallerFailed:
            self.installer.run(*command, observer=replace(observer, on_line=Downloads(on_progress).read))

    def _look(self, plan: EnvironmentPlan) -> dict[tuple[int, int], Seal]:
        return {} if plan.request.mutates else self.wheel_seals.look(wheel.key for wheel in plan.lock.wheels)

    def _seal(
        self, plan: EnvironmentPlan, wheels: Mapping[str, Distribution], looked: Mapping[tuple[int, int], Seal]
    ) -> tuple[Seal, list[Distribution]]:
        if plan.request.mutates:
            return Seal({}, ()), []  # copies, which no other environment sees and no other job leases
        return self.wheel_seals.seal(plan.site, wheels, looked)

    def _lay_bytecode(self, plan: EnvironmentPlan) -> dict[str, int]:
        laid = {}
        for wheel in plan.lock.wheels:
            size = self.bytecode.lay(plan.tag, wheel.key, plan.site, copies=plan.request.mutates)
            if size is not None:
                laid[wheel.key] = size
        return laid

    def _compile_rest(
        self,
        plan: EnvironmentPlan,
        wheels: Mapping[str, Distribution],
        laid: Mapping[str, int],
        observer: ProcessObserver,
        on_progress: OnProgress,
    ) -> dict[str, int]:
        fresh = {key: wheel for key, wheel in wheels.items() if key not in laid}
        sources = [source for wheel in fresh.values() for source in bytecode_files(wheel, plan.tag)]
        if sources:
            on_progress("compile", f"{len(sources)} files", 0, 0)
            compile_sources(plan.python, plan.site, sources, env=self._environ(), observer=observer)
        copies = plan.request.mutates
        return {key: self.bytecode.keep(plan.tag, key, wheel, copies=copies) for key, wheel in fresh.items()}

    def _prove(
        self,
        plan: EnvironmentPlan,
        distributions: Mapping[str, Distribution],
        observer: ProcessObserver,
        on_progress: OnProgress,
    ) -> dict[str, str]:
        """The versions that a process in the environment imports, with the versions of the pinned extra packages."""
        imported = self.proofs.find(plan.lock, plan.interpreter)
        if imported is None:
            on_progress("probe", "importing torch", 0, 0)
            imported = import_torch(plan.python, self._environ(), observer)
            self.proofs.keep(plan.lock, plan.interpreter, imported)
        extra = {name: distributions.get(canonicalize_name(name.partition("[")[0])) for name in plan.request.pins}
        return {
            **imported,
            **{name: distribution.version if distribution else "" for name, distribution in extra.items()},
        }

    def _environ(self) -> dict[str, str]:
        """The variables of a process of the build here: enough to run, no secret, no GPU."""
        passed = {name: value for name, value in self.installer.environ.items() if name in {"PATH", "LANG", "LC_ALL"}}
        return {**passed, "HOME": tempfile.gettempdir(), "CUDA_VISIBLE_DEVICES": ""}
