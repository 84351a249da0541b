"""What lies in an environment's site-packages: its distributions, its seals, its locks against edits. Reads files only.

Nearly all of these files are hard links of uv's cache, so that writing into one would change it everywhere (measured:
facts of 2026-11; astral-sh/uv#10579). Their modes are left alone for the same reason; folders belong to us.
"""

import base64
import csv
import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from packaging.utils import canonicalize_name

_PYCACHE = "__pycache__"
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
        try:
            text = (self.folder / _RECORD).read_text(encoding="utf-8")
        except OSError:
            return
        for row in csv.reader(text.splitlines()):
            if len(row) == 3 and not row[0].startswith(("/", "..")):  # noqa: PLR2004 - path, hash, size
                yield row

    def is_poisoned(self, tops: Collection[str]) -> bool:
        """Whether a file of `tops` was edited in place while it is shared with uv's cache and other environments."""
        for path, told, _ in self._record():
            method, _, expected = told.partition("=")
            if path.partition("/")[0] in tops and method == "sha256":
                file = self.folder.parent / path
                if file.is_file() and file.stat().st_nlink > 1 and _sha256(file) != expected:
                    return True
        return False

    def inode(self) -> tuple[int, int] | None:
        """Which file its METADATA is: the same for every environment that hard-links the same unpacked wheel."""
        try:
            found = (self.folder / "METADATA").stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino


def site_of(environment: Path, python: str) -> Path:
    return environment / "lib" / f"python{python}" / "site-packages"


def find_distributions(site: Path) -> dict[str, Distribution]:
    """What is installed, by canonical name."""
    found: dict[str, Distribution] = {}
    for folder in sorted(site.glob("*.dist-info")):
        stem, _, version = folder.name.removesuffix(".dist-info").rpartition("-")
        name = canonicalize_name(stem)
        found[name] = Distribution(name=name, version=version, folder=folder)
    return found


def _sha256(file: Path) -> str:
    """As RECORD has it: URL-safe base64 without padding."""
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").digest()
    return base64.urlsafe_b64encode(found).rstrip(b"=").decode()


@dataclass(frozen=True)
class Tree:
    """What lies in a folder. `files` maps each path to (inode, its line in a seal); `folders` are all but bytecode's."""

    files: Mapping[str, tuple[int, str]]
    folders: tuple[str, ...]


def read_tree(root: Path, known: Mapping[str, tuple[int, str]] = MappingProxyType({})) -> Tree:
    """Look at every file in `root`; bytecode and RECORDs are left out.

    `known` are files that were looked at a moment ago under another name: what is still the same file, by path and
    inode, is not asked again (0.04 s instead of 0.1 for torch's 15,000 files).
    """
    files, folders = {}, []
    for folder, entries in _walk(root):
        folders.append(folder)
        for entry in entries:
            if entry.name == _RECORD:
                continue
            path, inode = f"{folder}/{entry.name}", entry.inode()
            told = known.get(path)
            if told is None or told[0] != inode:
                found = entry.stat(follow_symlinks=False)
                told = inode, f"{path} {found.st_size} {found.st_mtime_ns}"
            files[path] = told
    return Tree(files, tuple(folders))


def seal(files: Mapping[str, tuple[int, str]]) -> dict[str, str]:
    """A digest for each top-level entry, over path, size and modification time of its files.

    It notices every edit, addition and removal that does not forge times, by this user or any other. It is how an
    edited environment is found before it is used again: no permission binds root.
    """
    facts: dict[str, list[str]] = {}
    for path, (_, line) in files.items():
        top, _, rest = path.partition("/")
        facts.setdefault(top or rest, []).append(line)
    return {top: _digest_of(lines) for top, lines in facts.items()}


def _digest_of(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(sorted(lines)).encode(errors="surrogateescape")).hexdigest()[:32]


def _walk(root: Path) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """Each folder (relative) with what lies in it that is no folder; bytecode folders are passed over.

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
                        if not entry.is_dir(follow_symlinks=False):
                            files.append(entry)
                        elif entry.name != _PYCACHE:
                            waiting.append(f"{folder}/{entry.name}" if folder else entry.name)
                yield folder, files
            finally:
                os.close(descriptor)
    finally:
        os.close(top)


def close_folders(site: Path, folders: Iterable[str]) -> None:
    """Forbid to add and remove files, bytecode included, so that pip and its like fail at once."""
    for folder in folders:
        os.chmod(f"{site}/{folder}", 0o555)  # noqa: PTH101 - thousands of times
        with suppress(FileNotFoundError):
            os.chmod(f"{site}/{folder}/{_PYCACHE}", 0o555)  # noqa: PTH101 - as above


def open_folders(folder: Path) -> None:
    """Undo what `close_folders` closed, so that the environment can be removed."""
    for path, _, _ in os.walk(folder):
        one = Path(path)
        mode = stat.S_IMODE(one.stat().st_mode)
        if not mode & stat.S_IWUSR:
            one.chmod(mode | stat.S_IWUSR)
