"""An environment's site-packages: its distributions, its seals, its protection against edits.

Nearly all of these files are hard links of uv's cache, so that writing into one would change it everywhere (measured:
facts of 2026-11; astral-sh/uv#10579). Their modes are left alone for the same reason; folders belong to us.
"""

import base64
import csv
import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

from packaging.utils import canonicalize_name
from pydantic import TypeAdapter

from knowngood_workers.common.files import read_json, read_regular, write_whole

_CLOSED = stat.S_IRUSR | stat.S_IXUSR | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH
_PYCACHE = "__pycache__"
_RECORD_BYTES = 64 << 20
_RECORD = "RECORD"  # uv writes one for each environment, and copies those that wheels carry inside (setuptools)


@dataclass(frozen=True)
class Distribution:
    """One installed package; `folder` is its `.dist-info`."""

    name: str
    version: str
    folder: Path

    def files(self) -> Iterator[tuple[str, int]]:
        """(path relative to site-packages, bytes) of what the wheel brought, out of its RECORD."""
        for path, _, size in self._record():
            yield path, int(size or 0)

    def _record(self) -> Iterator[list[str]]:
        text = read_regular(self.folder / _RECORD, _RECORD_BYTES)
        for row in csv.reader(text.splitlines()):
            if len(row) == 3 and not row[0].startswith(("/", "..")):  # noqa: PLR2004 - path, hash, size
                yield row

    def is_edited_in(self, tops: Collection[str]) -> bool:
        """Whether a file of `tops` was edited in place while it is shared with uv's cache and other environments."""
        for path, hashed, _ in self._record():
            method, _, expected = hashed.partition("=")
            if path.partition("/")[0] in tops and method == "sha256":
                file = self.folder.parent / path
                if file.is_file() and file.stat().st_nlink > 1 and _sha256(file) != expected:
                    return True
        return False

    def inode(self) -> tuple[int, int] | None:
        """Which file its METADATA is: the same for every environment that hard-links the same unpacked wheel."""
        try:
            status = (self.folder / "METADATA").stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino


def site_of(environment: Path, python: str) -> Path:
    return environment / "lib" / f"python{python}" / "site-packages"


def find_distributions(site: Path) -> dict[str, Distribution]:
    """The installed packages, by canonical name."""
    distributions: dict[str, Distribution] = {}
    for folder in sorted(site.glob("*.dist-info")):
        stem, _, version = folder.name.removesuffix(".dist-info").rpartition("-")
        name = canonicalize_name(stem)
        distributions[name] = Distribution(name=name, version=version, folder=folder)
    return distributions


def inodes_of(distributions: Iterable[Distribution]) -> set[tuple[int, int]]:
    """Which files of uv's cache their METADATA are, as far as they have one."""
    return {inode for distribution in distributions if (inode := distribution.inode()) is not None}


def _sha256(file: Path) -> str:
    """As RECORD has it: URL-safe base64 without padding."""
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@dataclass(frozen=True)
class Seal:
    """A digest for each top-level entry of a folder and one for all of its bytecode, and its folders (relative), those
    of bytecode left out.
    """

    digests: Mapping[str, str]
    folders: tuple[str, ...]
    bytecode: str = ""

    @property
    def of_environment(self) -> dict[str, str]:
        """The seals of a finished environment. Bytecode is run instead of the sources that lie beside it."""
        return {**self.digests, _PYCACHE: self.bytecode}


def seal(root: Path, *, without: Collection[str] = (), bytecode: bool = True) -> Seal:
    """Digest path, size and modification time of every file but RECORDs and the top-level entries `without`.

    Without `bytecode`, its folders are passed over: they may change meanwhile, as they do while sources are compiled.

    It notices every edit, addition and removal that does not forge times, by this user or any other, in 0.1 s for
    torch's 15,000 files. It is how an edited environment is found before it is used again: no permission binds root.
    """
    facts: dict[str, list[str]] = {}
    folders: list[str] = []
    compiled: list[str] = []
    for folder, entries in _walk(root, without, bytecode=bytecode):
        is_bytecode = folder.endswith(_PYCACHE)
        folders += [] if is_bytecode else [folder]
        for entry in entries:
            if entry.name == _RECORD:
                continue
            status = entry.stat(follow_symlinks=False)
            lines = compiled if is_bytecode else facts.setdefault(folder.partition("/")[0] or entry.name, [])
            lines.append(f"{folder}/{entry.name} {status.st_size} {status.st_mtime_ns}")
    digests = {top: _digest_of(lines) for top, lines in facts.items()}
    return Seal(digests, tuple(folders), _digest_of(compiled))


def _digest_of(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(sorted(lines)).encode(errors="surrogateescape")).hexdigest()[:32]


def _walk(root: Path, without: Collection[str], *, bytecode: bool) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """Each folder (relative) with what lies in it that is no folder.

    By descriptors, because the kernel then looks up one name for each file instead of ten: 0.08 s instead of 0.13.
    """
    top = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=top)
            try:
                files = []
                with os.scandir(descriptor) as entries:
                    for entry in entries:
                        if not folder and entry.name in without:
                            continue
                        if not entry.is_dir(follow_symlinks=False):
                            files.append(entry)
                        elif bytecode or entry.name != _PYCACHE:
                            waiting.append(f"{folder}/{entry.name}" if folder else entry.name)
                yield folder, files
            finally:
                os.close(descriptor)
    finally:
        os.close(top)


def close_folders(site: Path, folders: Iterable[str]) -> None:
    """Forbid to add and remove files, bytecode included, so that pip and its like fail at once."""
    for folder in folders:
        os.chmod(f"{site}/{folder}", _CLOSED)  # noqa: PTH101 - thousands of times
        with suppress(FileNotFoundError):
            os.chmod(f"{site}/{folder}/{_PYCACHE}", _CLOSED)  # noqa: PTH101 - as above


# -- the unpacked wheels of uv's cache, as they looked when first installed, so that an edit of one is found -----------
# uv checks a wheel's hash when it unpacks it and never again. A file edited in one environment is edited in the cache,
# and would be in every environment made after it.


@dataclass(frozen=True)
class _WheelRecord:
    inode: tuple[int, int]
    tops: tuple[str, ...]
    seals: Mapping[str, str]
    archive: str = ""


@dataclass(frozen=True)
class WheelSeals:
    """One small file per wheel in `root`: which file its METADATA is, its top-level entries, their seals, and where in
    `cache` it lies unpacked, once that was looked for.
    """

    root: Path
    cache: Path

    def look(self, keys: Iterable[str]) -> dict[tuple[int, int], Seal]:
        """How those wheels look in uv's cache now that were installed before, each by which file its METADATA is.

        So nearly all of an environment is looked at while uv still makes it.
        """
        known = {key: record for key in keys if (record := self._load(key)) is not None}
        self._find_archives(known)
        seals = {}
        for record in known.values():
            with suppress(OSError):  # removed meanwhile
                if record.archive:
                    seals[record.inode] = seal(Path(record.archive), bytecode=False)
        return seals

    def _find_archives(self, known: dict[str, _WheelRecord]) -> None:
        lost = {record.inode: key for key, record in known.items() if not record.archive}
        for path in self.cache.glob("archive-v*/*/*.dist-info/METADATA") if lost else ():
            status = path.stat()
            key = lost.get((status.st_dev, status.st_ino))
            if key is not None:
                known[key] = replace(known[key], archive=str(path.parents[1]))
                self._save(key, known[key])

    def seal(
        self, site: Path, wheels: Mapping[str, Distribution], looked: Mapping[tuple[int, int], Seal]
    ) -> tuple[Seal, list[Distribution]]:
        """The seal of an environment, bytecode left out, and which of its `wheels` (by key) are not as once unpacked.

        Wheels that were never seen are remembered. What a single wheel brought is sealed as it was just `looked` at in
        uv's cache, whose very files uv linked; the rest is looked at here. A top-level entry that several wheels share
        (`nvidia`) is not compared.
        """
        known = {key: self._load(key) for key in wheels}
        records = {key: self._look(wheel, known[key]) for key, wheel in wheels.items()}
        shares = Counter(top for record in records.values() for top in record.tops)
        linked = [
            _part(looked[record.inode], record.tops, shares) for record in records.values() if record.inode in looked
        ]
        taken = {top: digest for part in linked for top, digest in part.digests.items()}
        rest = seal(site, without=taken, bytecode=False)
        sealed = Seal({**taken, **rest.digests}, tuple(chain(rest.folders, *(part.folders for part in linked))))
        edited = []
        for key, record in records.items():
            own = {top: sealed.digests[top] for top in record.tops if shares[top] == 1 and top in sealed.digests}
            before = known[key]
            if before is None or before.inode != record.inode:
                self._save(key, replace(record, seals=own))
            elif any(before.seals.get(top, digest) != digest for top, digest in own.items()):
                edited.append(wheels[key])
        return sealed, edited

    def _path(self, key: str) -> Path:
        return self.root / f"{key}.json"

    def _load(self, key: str) -> _WheelRecord | None:
        stored = read_json(self._path(key))
        return TypeAdapter(_WheelRecord).validate_python(stored) if stored else None

    def _save(self, key: str, known: _WheelRecord) -> None:
        write_whole(self._path(key), json.dumps(asdict(known)))

    def _look(self, wheel: Distribution, before: _WheelRecord | None) -> _WheelRecord:
        inode = wheel.inode() or (0, 0)
        if before is not None and before.inode == inode:
            return before
        info = wheel.folder.name  # its RECORD and INSTALLER are written for each environment
        tops = {path.partition("/")[0] for path, _ in wheel.files()} - {info}
        return _WheelRecord(inode, tuple(sorted(tops)), {})


def _part(looked: Seal, tops: Iterable[str], shares: Mapping[str, int]) -> Seal:
    """The seal of the entries that only this wheel brings; nothing where uv lays some of it elsewhere (`*.data`)."""
    if any(top.endswith(".data") for top in looked.digests):
        return Seal({}, ())
    own = {top: looked.digests[top] for top in tops if shares[top] == 1 and top in looked.digests}
    return Seal(own, tuple(folder for folder in looked.folders if folder.partition("/")[0] in own))
