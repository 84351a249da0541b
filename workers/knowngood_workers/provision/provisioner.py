"""Environments for builds: made once, shared by hard links, leased while in use, removed when space runs out.

Everything here happens below one root folder. `provision` is the door: it gives a lease on a ready environment or
raises ProvisionFailure with the reason. What goes wrong here says something about this machine, never about an issue.
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from time import monotonic, sleep

from knowngood.domain.builds.build import Build, difference
from knowngood.domain.issue import EnvironmentRequest, digest
from knowngood.domain.message import english
from knowngood.domain.verdicts.outcome import Trouble, TroubleCode
from knowngood_workers.common.host_lock import turn
from knowngood_workers.host.diagnostics import host_trouble
from knowngood_workers.host.interpreters import find_interpreter
from knowngood_workers.provision.adopted_env import ImportCache, inspect_interpreter
from knowngood_workers.provision.bytecode_cache import BytecodeStore
from knowngood_workers.provision.download_estimate import (
    UNPACKED,
    Estimate,
    Space,
    ask_sizes,
    find_cached,
    load_sizes,
    measure_wheels,
    sum_up,
)
from knowngood_workers.provision.environment_cache import EnvironmentCache, EnvironmentRecord, Lease, list_ready
from knowngood_workers.provision.index_config import Index
from knowngood_workers.provision.resolver import Lock, ProvisionFailure, Resolver, environment_key, trouble_of
from knowngood_workers.provision.site_packages import WheelSeals
from knowngood_workers.provision.uv_cli import Cancelled, Fault, Installer, InstallerFailed, ProcessObserver
from knowngood_workers.provision.venv_builder import EditedWheels, EnvironmentBuilder, EnvironmentPlan, OnProgress

__all__ = ["Cancelled", "Environment", "ProvisionFailure", "Provisioner", "choose_cache", "host_trouble"]

# With this much free, nobody asks how large the next environment will be: the largest build seen is half of it.
_PLENTY = 16 << 30
_RESERVE = 500 << 20
_TRIES = 3
# Resolutions side by side: each waits for the index nearly all of its 2 s.
_RESOLVED_AT_ONCE = 8
# At a time on one host: a host with eight GPUs would else fetch eight builds of 3 GB side by side.
_DOWNLOADS = 2
_POLL_S = 0.2


Pair = tuple[Build, EnvironmentRequest]


@dataclass(frozen=True)
class Environment(AbstractContextManager["Environment"]):
    """A ready environment and the right to use it; leave the `with` block to give it back.

    `lock` is the pylock.toml (it names hosts); `imported` what a process in it reported: torch, cuda, triton, python,
    git, arch (what the kernels were compiled for), numpy, setuptools and each pinned extra package. `seconds` is what
    this call took, `sources` where its packages came from, in words without hosts. `interpreter` is the Python that
    we made it of, None where it was found.
    """

    python: Path
    root: Path
    lock: str
    lock_digest: str
    packages: Mapping[str, str]
    imported: Mapping[str, str]
    seconds: float
    reused: bool
    sources: tuple[str, ...] = ()
    interpreter: Path | None = None
    _lease: Lease | None = field(default=None, repr=False, compare=False)

    def __exit__(self, *_: object) -> None:
        if self._lease is not None:
            self._lease.release()


def choose_cache(root: Path, environ: Mapping[str, str]) -> Path:
    """Which cache of uv to use: the user's own where it shares a file system with `root`, so that torch is downloaded
    once; else one beside the environments, since hard links do not cross file systems.
    """
    fallback = Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "/")) / ".cache") / "uv"
    own = Path(environ.get("UV_CACHE_DIR") or fallback)
    return own if _device(own) == _device(root) else root / "uv-cache"


def _device(path: Path) -> int:
    return next(place for place in (path.absolute(), *path.absolute().parents) if place.exists()).stat().st_dev


class Provisioner:
    """Makes, keeps and removes the environments below `root`.

    `limit_bytes` bounds what they take, wheels unpacked for them in uv's cache included; what is in use may exceed it.
    `reserve_bytes` is what stays free on the disk. `index` and `environ` are read from this machine where not given.
    `adopted` maps builds to interpreters of this machine that hold them already: these are used as they are wherever
    an issue needs nothing beside the build.
    """

    def __init__(  # noqa: PLR0913 - all but the first are given by name
        self,
        root: Path,
        *,
        limit_bytes: int,
        cache: Path | None = None,
        index: Index | None = None,
        environ: Mapping[str, str] = os.environ,
        reserve_bytes: int = _RESERVE,
        adopted: Mapping[str, Path] | None = None,
    ) -> None:
        root = root.absolute()
        self.root = root
        self.limit_bytes = limit_bytes
        self.reserve_bytes = reserve_bytes
        self._environ = dict(environ)
        self._adopted = dict(adopted or {})
        cache = cache or choose_cache(root, environ)
        self.installer = Installer(cache, root, given_index=index, environ=self._environ)
        self.environments = EnvironmentCache(root / "environments", cache)
        self._resolver = Resolver(root / "locks", self.installer)
        self._sizes = root / "sizes.json"
        self._bytecode = BytecodeStore(root / "bytecode")
        proofs, seals = ImportCache(root / "proofs"), WheelSeals(root / "wheels", cache)
        self._builder = EnvironmentBuilder(self.installer, self._bytecode, proofs, seals)

    def provision(
        self,
        build: Build,
        request: EnvironmentRequest,
        on_progress: OnProgress,
        *,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> Environment:
        """A lease on the environment of `build` with `request`, made where there is none. Safe in many processes.

        One that a repro edits is made for this lease alone and gone with it, so that no edit is ever found by another.
        `on_progress(phase, detail, done_bytes, total_bytes)` hears of resolve, sync, compile and probe, and of wait
        while others make theirs. Raises ProvisionFailure, and Cancelled soon after `is_cancelled` says so.
        """
        began, made, observer = monotonic(), 0, ProcessObserver(is_cancelled=is_cancelled)
        if self._is_adopted(build, request):
            return self._use_adopted(build, observer, on_progress)
        if request.mutates:
            return self._make_for_one_lease(build, request, observer, on_progress)
        key = environment_key(build, request)
        while made < _TRIES:
            leased = self.environments.lease(key, is_fresh=made > 0)
            if leased is not None:
                ready, lease = leased
                return self._environment(ready, lease, seconds=monotonic() - began, is_made=made > 0)
            if self._make_alone(build, request, key, observer, on_progress):
                made += 1
                continue
            observer.check()
            sleep(_POLL_S)
        sentence = "the environment was removed by others as soon as it was made; look who else cleans up there"
        raise ProvisionFailure(Trouble(TroubleCode.PROVISION_FAILED, sentence))

    def _is_adopted(self, build: Build, request: EnvironmentRequest) -> bool:
        return build.id in self._adopted and not request.packages and not request.mutates

    def _use_adopted(self, build: Build, observer: ProcessObserver, on_progress: OnProgress) -> Environment:
        """Use the machine's own environment of `build`. It is inspected each time, since anybody may change it."""
        began = monotonic()
        on_progress("probe", "importing torch", 0, 0)
        inspected = inspect_interpreter(self._adopted[build.id], self._environ, observer)
        wrong = difference(build, inspected.imported, {})
        if wrong:
            sentence = f"{english(wrong)}; the interpreter that was adopted for {build.id} holds another build now"
            raise ProvisionFailure(Trouble(TroubleCode.WRONG_BUILD, sentence))
        return Environment(
            python=inspected.python,
            root=inspected.python.parent.parent,
            lock=inspected.lock,
            lock_digest=digest(inspected.lock),
            packages=inspected.packages,
            imported=inspected.imported,
            seconds=round(monotonic() - began, 3),
            reused=True,
            sources=("adopted as found",),
        )

    def _environment(self, ready: EnvironmentRecord, lease: Lease, *, seconds: float, is_made: bool) -> Environment:
        folder = self.environments.folder(ready.key)
        return Environment(
            python=folder / "bin" / "python",
            root=folder,
            lock=self.environments.lock(ready.key),
            lock_digest=ready.lock_digest,
            packages=ready.packages,
            imported=ready.imported,
            seconds=round(seconds, 3),
            reused=not is_made,
            sources=ready.sources,
            interpreter=Path(ready.interpreter),
            _lease=lease,
        )

    def _make_for_one_lease(
        self, build: Build, request: EnvironmentRequest, observer: ProcessObserver, on_progress: OnProgress
    ) -> Environment:
        """Should this process be killed, the next one to tidy up removes it, because it is never marked ready."""
        self.trim()
        began, own = monotonic(), f"{environment_key(build, request)}-{token_hex(4)}"
        lease = self.environments.lease_new(own)
        try:
            observer = replace(observer, inherited=(lease.descriptor,))
            with self._download_turn(observer, on_progress):
                ready = self._make(build, request, own, observer, on_progress)
        except BaseException:
            lease.release()
            raise
        return self._environment(ready, lease, seconds=monotonic() - began, is_made=True)

    def _download_turn(self, observer: ProcessObserver, on_progress: OnProgress) -> AbstractContextManager[None]:
        def wait() -> None:
            observer.check()
            on_progress("wait", "others download on this host", 0, 0)

        return turn("downloads", _DOWNLOADS, wait)

    def _make_alone(
        self, build: Build, request: EnvironmentRequest, key: str, observer: ProcessObserver, on_progress: OnProgress
    ) -> bool:
        """Make an environment while nobody else does; False where another process holds it, or was quicker."""
        with self.environments.exclusive(key, observer.check) as descriptor:
            if descriptor is None or self.environments.load(key) is not None:
                return False  # another process is making it, or made it just now
            observer = replace(observer, inherited=(descriptor,))
            try:
                with self._download_turn(observer, on_progress):
                    self.environments.finish(self._make(build, request, key, observer, on_progress))
            except BaseException:
                self.environments.discard(key)
                raise
        self.trim(keep=(key,))
        return True

    def _make(
        self, build: Build, request: EnvironmentRequest, key: str, observer: ProcessObserver, on_progress: OnProgress
    ) -> EnvironmentRecord:
        """`key` is what the environment is known by on the cache."""
        interpreter, lock_key = self._interpreter(build), environment_key(build, request)
        on_progress("resolve", build.id, 0, 0)
        while True:
            is_stored = self._resolver.load(lock_key) is not None
            lock = self._resolver.resolve(build, request, interpreter, observer)
            plan = EnvironmentPlan(build, request, key, interpreter, lock, self.environments.folder(key))
            try:
                return self._assemble(plan, observer, on_progress)
            except InstallerFailed as failed:
                if not is_stored or failed.fault in {Fault.DISK_FULL, Fault.UNREACHABLE}:
                    raise ProvisionFailure(self._explain(failed, build)) from failed
            # What was resolved long ago may have left the index; the same date gives the same versions of what is left.
            self.environments.discard(key)
            self._resolver.forget(lock_key)

    def _assemble(self, plan: EnvironmentPlan, observer: ProcessObserver, on_progress: OnProgress) -> EnvironmentRecord:
        self._make_room(plan)
        try:
            try:
                return self._builder.assemble(plan, observer, on_progress)
            except EditedWheels as edited:
                self.environments.discard(plan.key)
                self.environments.drop_unpacked_wheels(edited.inodes, observer.check)
                return self._builder.assemble(plan, observer, on_progress)
        except EditedWheels as edited:
            sentence = f"{edited} in uv's cache is edited again and again; look who writes into site-packages"
            raise ProvisionFailure(Trouble(TroubleCode.PROVISION_FAILED, sentence)) from edited
        except OSError as problem:
            if problem.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise ProvisionFailure(self._disk_full("the disk became full")) from problem
            raise

    def _interpreter(self, build: Build) -> Path:
        interpreter = find_interpreter(build.python, self._environ)
        if interpreter is None:
            sentence = (
                f"Python {build.python} is not on this machine; install it (apt-get install python{build.python}-dev "
                f"python{build.python}-venv, pyenv install {build.python}, or uv python install {build.python}), "
                "or choose builds of a Python that is here"
            )
            raise ProvisionFailure(Trouble(TroubleCode.NO_INTERPRETER, sentence))
        return interpreter

    def _explain(self, failed: InstallerFailed, build: Build) -> Trouble:
        """A failed installation with little space left is a full disk, whatever uv said last."""
        if failed.fault is Fault.DISK_FULL or (failed.fault is Fault.OTHER and self.free_bytes() < self.reserve_bytes):
            return self._disk_full("the disk became full")
        return trouble_of(failed, origin=build.origin)

    def free_bytes(self) -> int:
        """Free disk space where environments are kept."""
        self.root.mkdir(parents=True, exist_ok=True)
        return shutil.disk_usage(self.root).free

    def _make_room(self, plan: EnvironmentPlan) -> None:
        """Have space for an environment before it is made. Raises ProvisionFailure where there is not enough.

        Its size is only asked for where space is short: a build is 1 to 8 GB, unpacked.
        """
        if self.free_bytes() >= max(_PLENTY, self.reserve_bytes):
            return
        cached = find_cached(self.installer.cache, {wheel.name for wheel in plan.lock.wheels})
        missing = [wheel for wheel in plan.lock.wheels if cached.isdisjoint(wheel.hashes)]
        sizes = measure_wheels(missing, self.installer.variables())
        needed = self.reserve_bytes + int(sum(size or 0 for size in sizes.values()) * UNPACKED)
        if self.free_bytes() < needed:
            self.environments.trim(is_enough=lambda _: self.free_bytes() >= needed, keep=(plan.key,))
        if self.free_bytes() < needed:
            raise ProvisionFailure(self._disk_full(f"this environment needs {_words(needed)}"))

    def _disk_full(self, what: str) -> Trouble:
        sentence = (
            f"{what} and {_words(self.free_bytes())} are free where environments are kept; free some space, "
            "or keep them on a larger disk"
        )
        return Trouble(TroubleCode.DISK_FULL, sentence)

    def trim(self, *, keep: Sequence[str] = ()) -> list[str]:
        """Remove environments not in use, least recently used first, until they fit the limit; gives their keys."""
        removed = self.environments.trim(is_enough=lambda held: held <= self.limit_bytes, keep=keep)
        if removed:
            self._bytecode.forget_unused({wheel for ready in self.environments.load_all() for wheel in ready.wheels})
        return removed

    def estimate(
        self,
        pairs: Iterable[Pair],
        stored: Mapping[EnvironmentRequest, Lock],
        troubles: Mapping[str, Trouble] | None = None,
    ) -> Estimate:
        """An estimate of provisioning all of `pairs`, as far as this machine knows: nobody is asked.

        `stored` are locks of other machines, for what was never resolved here: the same date gives the same wheels.
        `troubles` is what `look_up` came back with; what cannot be made takes nothing.
        """
        survey = self._survey(pairs, stored)
        known_troubles = {**survey.troubles, **(troubles or {})}
        made = [(build, lock) for (build, request), lock in survey.new if request.name not in known_troubles]
        space = Space(self.free_bytes(), self.environments.footprint(), self.limit_bytes)
        return sum_up(made, survey.sizes, survey.cached, ready=survey.ready, space=space, troubles=known_troubles)

    def look_up(
        self,
        pairs: Iterable[Pair],
        stored: Mapping[EnvironmentRequest, Lock],
        *,
        seconds: float,
        on_asked: Callable[[int, int], None],
    ) -> dict[str, Trouble]:
        """Ask the index for what `estimate` misses, for at most so many seconds; what it says is kept.

        `on_asked` hears for how many environments of how many it was asked. Gives those that cannot be made, by name.
        """
        questions = self._survey(pairs, stored).open_questions
        until, unreachable = monotonic() + seconds, dict[str, Trouble]()
        ask = partial(self._ask_index, until=until, unreachable=unreachable)
        on_asked(0, len(questions))
        troubles: dict[str, Trouble] = {}
        self.installer.index  # noqa: B018 - read once, before many threads would read it
        with ThreadPoolExecutor(_RESOLVED_AT_ONCE) as pool:
            for at, (pair, trouble) in enumerate(zip(questions, pool.map(ask, questions), strict=True), 1):
                on_asked(at, len(questions))
                troubles |= {pair[1].name: trouble} if trouble is not None else {}
        locks = (self._resolver.load(environment_key(*pair)) for pair in questions)
        silent = [wheel for lock in locks if lock is not None for wheel in lock.wheels if wheel.size is None]
        ask_sizes(self._sizes, silent, self.installer.variables(), lambda: monotonic() > until)
        return troubles

    def _ask_index(self, pair: Pair, *, until: float, unreachable: dict[str, Trouble]) -> Trouble | None:
        """Have the environment resolved, until a moment of the clock; gives why it cannot be. Many threads ask at once,
        and an index that cannot be reached (by its origin) is not asked again: uv tries for 10 s.
        """
        build, request = pair
        observer = ProcessObserver(is_cancelled=lambda: monotonic() > until or build.origin in unreachable)
        try:
            observer.check()
            self._resolver.resolve(build, request, self._interpreter(build), observer)
        except Cancelled:
            return unreachable.get(build.origin)
        except ProvisionFailure as failure:
            if failure.trouble.code is TroubleCode.INDEX_UNREACHABLE:
                unreachable[build.origin] = failure.trouble
            return failure.trouble
        return None

    def _survey(self, pairs: Iterable[Pair], stored: Mapping[EnvironmentRequest, Lock]) -> "_Survey":
        every = {environment_key(*pair): pair for pair in pairs}
        here = list_ready(self.environments.root)
        new: list[tuple[Pair, Lock | None]] = []
        troubles: dict[str, Trouble] = {}
        for key, (build, request) in every.items():
            if key in here or self._is_adopted(build, request):
                continue
            try:
                self._interpreter(build)
            except ProvisionFailure as failure:
                troubles[request.name] = failure.trouble
            else:
                new.append(((build, request), self._resolver.load(key) or stored.get(request)))
        wheels = [wheel for _, lock in new if lock is not None for wheel in lock.wheels]
        sizes = {**load_sizes(self._sizes), **{wheel.key: wheel.size for wheel in wheels if wheel.size is not None}}
        cached = find_cached(self.installer.cache, {wheel.name for wheel in wheels})
        return _Survey(tuple(new), len(every) - len(new) - len(troubles), sizes, cached, troubles)


@dataclass(frozen=True)
class _Survey:
    """Local knowledge of environments to be made: their locks (None: not known), the sizes of wheels by key, and
    what uv has. `ready` are there already; `troubles` names those that this machine cannot make.
    """

    new: tuple[tuple[Pair, Lock | None], ...]
    ready: int
    sizes: Mapping[str, int]
    cached: frozenset[str]
    troubles: Mapping[str, Trouble]

    @property
    def open_questions(self) -> list[Pair]:
        """Those whose wheels or sizes are not known: of the default index first, and those that others only add to."""
        questions = [
            pair
            for pair, lock in self.new
            if lock is None
            or any(wheel.key not in self.sizes and self.cached.isdisjoint(wheel.hashes) for wheel in lock.wheels)
        ]
        return sorted(questions, key=lambda pair: (pair[0].origin != "default", bool(pair[1].packages)))


def _words(size: int) -> str:
    return f"{size / (1 << 30):.1f} GB" if size >= 1 << 30 else f"{size / (1 << 20):.0f} MB"
