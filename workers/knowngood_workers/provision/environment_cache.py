"""The environments on this machine's disk: which are ready, who uses them, which must go when space runs out.

One folder and one lock file per environment. A shared flock on the lock file is a lease: an environment in use is never
removed. An exclusive one is held by whoever makes or removes it; the kernel drops both when their holder dies. A folder
without its `ready.json`, which is written last, is half-made, and the next one to hold its lock removes it.
"""

import fcntl
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from secrets import token_hex
from time import sleep, time_ns

from knowngood.domain.issue import digest
from knowngood_workers.common.files import read_json, read_regular, remove_tree, write_whole
from knowngood_workers.provision.site_packages import Distribution, find_distributions, inodes_of, seal, site_of
from knowngood_workers.provision.uv_cli import forget_missing

_READY = "ready.json"
_PYLOCK = "pylock.toml"
_MOST_BYTES = 16 << 20  # of either; they have some 20 KB
_LOCK = ".lock"  # also the name of uv's own: shared while uv works, exclusive while it prunes (uv 0.13.8)
_ONCE = ".once"  # the lock of an environment for one lease
_LEFT = "removed-"
_POLL_S = 0.1


@dataclass(frozen=True)
class EnvironmentRecord:
    """The record of a finished environment. `wheels` maps each wheel's key to the bytes it takes, shared with every
    environment that holds the same wheel; `own_bytes` is what belongs to this one alone. `seals` tell edits.
    `interpreter` is the Python that its maker linked: nothing in the environment is asked for it.
    """

    key: str
    build: str
    python: str
    interpreter: str
    lock_digest: str
    packages: Mapping[str, str]
    imported: Mapping[str, str]
    sources: tuple[str, ...]
    wheels: Mapping[str, int]
    own_bytes: int
    seals: Mapping[str, str]
    seconds: float


@dataclass
class Lease:
    """The right to use an environment until `release`. `descriptor` holds its lock."""

    descriptor: int
    on_release: Callable[[], None] = lambda: None

    def release(self) -> None:
        _touch(self.descriptor)
        self.on_release()
        os.close(self.descriptor)


@dataclass(frozen=True)
class EnvironmentCache:
    """`cache` is uv's: a wheel unpacked there for environments that are all gone is removed with the last of them."""

    root: Path
    cache: Path

    def folder(self, key: str) -> Path:
        return self.root / key

    def lease(self, key: str, *, is_fresh: bool = False) -> tuple[EnvironmentRecord, Lease] | None:
        """A lease on an environment that is ready and unedited; None where there is none such.

        `is_fresh` is for its maker, who sealed it a moment ago and need not look again.
        """
        descriptor = _open(self.root / f"{key}{_LOCK}")
        ready = self.load(key) if _try_lock(descriptor, fcntl.LOCK_SH) else None
        if ready is None or not (is_fresh or not self._changed(ready)):
            os.close(descriptor)
            return None
        _touch(descriptor)
        return ready, Lease(descriptor)

    def lease_new(self, key: str) -> Lease:
        """The right to make an environment that nobody else will ever lease: it goes with its lease."""
        while True:
            descriptor = _open(self.root / f"{key}{_ONCE}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if self._is_once(key, descriptor):
                return Lease(descriptor, on_release=lambda: self._forget(key))
            os.close(descriptor)

    def _is_once(self, key: str, descriptor: int) -> bool:
        """Whether the file that was locked is still where all look for it: a sweep may have removed it in between."""
        try:
            return os.path.samestat(os.fstat(descriptor), (self.root / f"{key}{_ONCE}").stat())
        except FileNotFoundError:
            return False

    def _forget(self, key: str) -> None:
        self.discard(key)
        (self.root / f"{key}{_ONCE}").unlink(missing_ok=True)

    @contextmanager
    def exclusive(self, key: str, on_wait: Callable[[], None]) -> Iterator[int | None]:
        """Hold an environment alone, to make or mend it; what another left half-made or edited is removed first.

        Gives the lock's descriptor, for children to inherit: should this process die, the lock stays until they have
        died too. Gives None where another process holds it. `on_wait` is called while uv's cache is waited for.
        """
        with self._locked(key) as descriptor:
            if descriptor is not None:
                self._remove_if_broken(key, on_wait)
            yield descriptor

    @contextmanager
    def _locked(self, key: str, ending: str = _LOCK) -> Iterator[int | None]:
        """The descriptor of a lock file, held alone; None where another process holds it."""
        with _opened(self.root / f"{key}{ending}") as descriptor:
            yield descriptor if _try_lock(descriptor, fcntl.LOCK_EX) else None

    def load(self, key: str) -> EnvironmentRecord | None:
        try:
            fields = json.loads(read_regular(self.folder(key) / _READY, _MOST_BYTES))
            return EnvironmentRecord(**{**fields, "sources": tuple(fields["sources"])})
        except (ValueError, TypeError, KeyError, RecursionError):
            return None

    def lock(self, key: str) -> str:
        """The pylock.toml that an environment was made by."""
        return read_regular(self.folder(key) / _PYLOCK, _MOST_BYTES)

    def finish(self, ready: EnvironmentRecord) -> None:
        """Say that an environment is ready. The rename is what makes it so."""
        write_whole(self.folder(ready.key) / _READY, json.dumps(asdict(ready)))

    def discard(self, key: str) -> None:
        """Remove an environment's files. The caller owns it. What cannot be removed is out of the way at least."""
        folder = self.folder(key)
        if folder.exists():
            (folder / _READY).unlink(missing_ok=True)
            left = folder.with_name(f"{_LEFT}{token_hex(8)}")
            folder.rename(left)
            remove_tree(left)

    def _changed(self, ready: EnvironmentRecord) -> set[str]:
        """The top-level entries that are not as they were when the environment was finished, and its lock."""
        try:
            seals = seal(site_of(self.folder(ready.key), ready.python)).of_environment
        except OSError:
            seals = {}
        of_lock = {_PYLOCK} if digest(self.lock(ready.key)) != ready.lock_digest else set()
        return of_lock | {
            name for name in seals.keys() | ready.seals.keys() if seals.get(name) != ready.seals.get(name)
        }

    def _remove_if_broken(self, key: str, on_wait: Callable[[], None]) -> None:
        """Remove what is half-made or edited; of the latter also the unpacked wheels that were edited with it."""
        ready, edited = self.load(key), set[tuple[int, int]]()
        if ready is not None:
            changed = self._changed(ready)
            if not changed:
                return
            edited = inodes_of(wheel for wheel in self._distributions(ready) if wheel.is_edited_in(changed))
        self.discard(key)
        if edited:
            self.drop_unpacked_wheels(edited, on_wait)

    def drop_unpacked_wheels(self, inodes: set[tuple[int, int]], on_wait: Callable[[], None]) -> None:
        """Remove edited unpacked wheels from uv's cache, so that uv unpacks them anew; waits until uv is idle."""
        with _opened(self.cache / _LOCK, 0o666) as descriptor:
            while not _try_lock(descriptor, fcntl.LOCK_EX):
                on_wait()
                sleep(_POLL_S)
            self._remove_archives(inodes, even_if_linked=True)

    def _distributions(self, ready: EnvironmentRecord) -> Iterable[Distribution]:
        return find_distributions(site_of(self.folder(ready.key), ready.python)).values()

    def footprint(self) -> int:
        """Bytes of all ready environments, each wheel counted once."""
        return _bytes_of(self.load_all())

    def load_all(self) -> list[EnvironmentRecord]:
        """The ready environments, least recently used first."""
        locks = sorted(self.root.glob(f"*{_LOCK}"), key=lambda path: path.stat().st_mtime_ns)
        records = (self.load(path.name.removesuffix(_LOCK)) for path in locks)
        return [ready for ready in records if ready is not None]

    def trim(self, *, is_enough: Callable[[int], bool], keep: Collection[str] = ()) -> list[str]:
        """Remove environments, least recently used first, until `is_enough(footprint)`; gives the keys removed.

        One in use, and those of `keep`, stay; so it may end with less than was wanted. Half-made ones go first.
        """
        self._sweep()
        every = self.load_all()
        standing = every.copy()
        for ready in every:
            if is_enough(_bytes_of(standing)):
                break
            if ready.key not in keep and self._evict(ready):
                standing.remove(ready)
        self._forget_archives(set())
        return [ready.key for ready in every if ready not in standing]

    def _sweep(self) -> None:
        for left in self.root.glob(f"{_LEFT}*"):
            remove_tree(left)
        for path in self.root.glob(f"*{_ONCE}"):
            key = path.name.removesuffix(_ONCE)
            with self._locked(key, _ONCE) as descriptor:
                if descriptor is not None and self._is_once(key, descriptor):  # its job was killed
                    self._forget(key)
        for lock in self.root.glob(f"*{_LOCK}"):
            key = lock.name.removesuffix(_LOCK)
            if self.folder(key).exists() and self.load(key) is None:
                with self.exclusive(key, lambda: None):
                    pass  # owning it removes what is half-made

    def _evict(self, ready: EnvironmentRecord) -> bool:
        with self._locked(ready.key) as descriptor:
            if descriptor is not None:
                inodes = inodes_of(self._distributions(ready))
                self.discard(ready.key)
                self._forget_archives(inodes)
            return descriptor is not None

    def _forget_archives(self, inodes: set[tuple[int, int]]) -> None:
        """Remove unpacked wheels from uv's cache that no environment links any more: there lie nearly all the bytes.

        uv itself offers to forget a package with all its versions, or all that is unreachable, which these are not. It
        unpacks anew what it misses. Its lock tells whether uv is at work; then this waits for the next time.
        """
        wanted = inodes | {(device, inode) for device, inode in read_json(self._orphans) or ()}
        if not wanted:
            return
        with _opened(self.cache / _LOCK, 0o666) as descriptor:
            if _try_lock(descriptor, fcntl.LOCK_EX):
                self._remove_archives(wanted, even_if_linked=False)
                self._orphans.unlink(missing_ok=True)
            else:
                self._orphans.write_text(json.dumps(sorted(wanted)), encoding="utf-8")

    def _remove_archives(self, inodes: set[tuple[int, int]], *, even_if_linked: bool) -> None:
        for folder in self.cache.glob("archive-v*/*"):
            if _is_unpacked_from(folder, inodes, even_if_linked=even_if_linked):
                remove_tree(folder)
        forget_missing(self.cache)

    @property
    def _orphans(self) -> Path:
        return self.root / "orphans.json"


def list_ready(root: Path) -> frozenset[str]:
    """The keys of the environments below the cache's root that are ready; none of them is looked into."""
    return frozenset(path.parent.name for path in root.glob(f"*/{_READY}"))


@contextmanager
def _opened(lock: Path, mode: int = 0o644) -> Iterator[int]:
    descriptor = _open(lock, mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open(lock: Path, mode: int = 0o644) -> int:
    lock.parent.mkdir(parents=True, exist_ok=True)
    return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _touch(lock: int) -> None:
    """Say that an environment is used now. The kernel's own clock for files ticks every 4 ms only."""
    os.utime(lock, ns=(time_ns(),) * 2)


def _bytes_of(environments: Collection[EnvironmentRecord]) -> int:
    shared: dict[str, int] = {}
    for ready in environments:
        shared |= ready.wheels
    return sum(shared.values()) + sum(ready.own_bytes for ready in environments)


def _is_unpacked_from(folder: Path, inodes: set[tuple[int, int]], *, even_if_linked: bool) -> bool:
    for path in folder.glob("*.dist-info/METADATA"):
        status = path.stat()
        if (status.st_dev, status.st_ino) in inodes and (even_if_linked or status.st_nlink == 1):
            return True
    return False
