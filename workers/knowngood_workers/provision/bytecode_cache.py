"""Compiled bytecode of wheels, made once and hard-linked into every environment that holds the same wheel.

Files carry their source's hash (PEP 552, checked), so they hold for any copy of the wheel and a source
that was edited is compiled anew by whoever imports it. Importing torch takes as long as with timestamps (measured
2026-11: 1.7 s of processor time either way; without bytecode 3.2 s, for each of a repro's processes).
"""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time

from knowngood_workers.common.files import read_regular, remove_tree
from knowngood_workers.provision.site_packages import Distribution
from knowngood_workers.provision.uv_cli import ProcessObserver, run_watched

_INDEX = ".files"
_INDEX_BYTES = 64 << 20
_MAKING = ".making-"
_COMPILE_S = 900

# `compileall -j` spreads folders over processes, but not a list of files. Forked children share the list; one whose
# parent was stopped stops too. Importing py_compile would take 25 ms; what is needed of it is few lines.
_COMPILE = """
import importlib.util, marshal, os, sys
files = open(sys.argv[1], encoding="utf-8").read().splitlines()
parent, children = os.getpid(), []
HASHED_AND_CHECKED = (3).to_bytes(4, "little")
def compile_file(file):
    with open(file, "rb") as opened:
        source = opened.read()
    code = marshal.dumps(compile(source, file, "exec", dont_inherit=True))
    target = importlib.util.cache_from_source(file)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target + ".making", "wb") as opened:
        opened.write(importlib.util.MAGIC_NUMBER + HASHED_AND_CHECKED + importlib.util.source_hash(source) + code)
    os.replace(target + ".making", target)
for child in range(int(sys.argv[2])):
    pid = os.fork()
    children.append(pid)
    if pid:
        continue
    for file in files[child :: int(sys.argv[2])]:
        if os.getppid() != parent:
            break
        try:
            compile_file(file)
        except Exception:
            pass
    os._exit(0)
for pid in children:
    os.waitpid(pid, 0)
"""


def bytecode_tag(python: str) -> str:
    """`cpython-311`: bytecode of one minor version of CPython serves every patch release of it."""
    return f"cpython-{python.replace('.', '')}"


@dataclass(frozen=True)
class BytecodeStore:
    """A folder per (Python, wheel). A folder that exists is whole: it is made elsewhere and renamed into place."""

    root: Path

    def folder(self, tag: str, key: str) -> Path:
        return self.root / tag / key

    def lay(self, tag: str, key: str, site: Path, *, copies: bool) -> int | None:
        """Put a wheel's bytecode beside its sources; gives the wheel's bytes with it, None where the store has none.

        `copies` where the environment is going to be edited. Bytecode that is not as it was made is forgotten: it may
        have been edited through an environment that links it.
        """
        folder = self.folder(tag, key)
        try:
            size, files = _load(folder)
        except (ValueError, OSError):
            remove_tree(folder)
            return None
        try:
            for parent in dict.fromkeys(os.path.dirname(file) for file in files):  # noqa: PTH120 - thousands of times
                os.makedirs(f"{site}/{parent}", exist_ok=True)  # noqa: PTH103 - as above
            for file in files:
                _place(f"{folder}/{file}", f"{site}/{file}", copies=copies)
        except FileNotFoundError:
            return None  # just forgotten by another process
        return size

    def keep(self, tag: str, key: str, distribution: Distribution, *, copies: bool) -> int:
        """Take a wheel's bytecode over from an environment where it was just compiled; gives what `lay` gives."""
        site, files = distribution.folder.parent, bytecode_files(distribution, tag).values()
        present = [file for file in files if os.path.exists(f"{site}/{file}")]  # noqa: PTH110 - thousands of times
        self.root.joinpath(tag).mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(prefix=_MAKING, dir=self.root / tag))
        size = sum(size for _, size in distribution.files())
        try:
            for file in present:
                (making / file).parent.mkdir(parents=True, exist_ok=True)
                _place(f"{site}/{file}", f"{making}/{file}", copies=copies)
            size += sum((making / file).stat().st_size for file in present)
            facts = [_fact(making, file) for file in present]
            (making / _INDEX).write_text("\n".join([str(size), *facts]), encoding="utf-8")
            making.chmod(0o755)
            making.replace(self.folder(tag, key))
        except OSError as problem:
            remove_tree(making)
            if problem.errno not in {errno.EEXIST, errno.ENOTEMPTY}:
                raise  # else another process was first, with the same content
        return size

    def forget_unused(self, used: Iterable[str]) -> None:
        """Remove the bytecode of wheels that no environment holds, and what a killed process left half-made."""
        in_use, an_hour_ago = set(used), time() - 3600
        for folder in self.root.glob("*/*"):
            is_old = folder.stat().st_mtime < an_hour_ago
            if folder.name not in in_use and (is_old or not folder.name.startswith(_MAKING)):
                remove_tree(folder)


def _load(folder: Path) -> tuple[int, list[str]]:
    """The wheel's bytes and its files of bytecode. Raises ValueError, OSError where they are not as they were made."""
    size, *lines = read_regular(folder / _INDEX, _INDEX_BYTES).splitlines()
    files = [line.rpartition("\t")[2] for line in lines]
    if [_fact(folder, file) for file in files] != lines:
        raise ValueError(f"{folder} was edited")
    return int(size), files


def _fact(folder: Path, file: str) -> str:
    """A file of the store as it is now: an edit that forges no times shows."""
    status = os.stat(f"{folder}/{file}")  # noqa: PTH116 - thousands of times
    return f"{status.st_size}\t{status.st_mtime_ns}\t{file}"


def _place(source: str, target: str, *, copies: bool) -> None:
    try:
        if copies:
            shutil.copyfile(source, target)
        else:
            os.link(source, target)
    except FileExistsError:
        return  # the wheel itself brought it
    except OSError:
        if copies:
            raise
        shutil.copyfile(source, target)  # a file system without hard links


def bytecode_files(distribution: Distribution, tag: str) -> dict[str, str]:
    """The sources worth compiling, each with its bytecode's path. Test suites inside wheels are not imported."""
    brought = {path for path, _ in distribution.files()}
    missing = {}
    for path in sorted(brought):
        if not path.endswith(".py") or "/tests/" in path or path.startswith("tests/"):
            continue
        folder, _, file = path.rpartition("/")
        compiled = f"{folder}/__pycache__/{file[:-3]}.{tag}.pyc".lstrip("/")
        if compiled not in brought:
            missing[path] = compiled
    return missing


def compile_sources(
    python: Path, site: Path, sources: Sequence[str], *, env: Mapping[str, str], observer: ProcessObserver
) -> None:
    """Compile in place on every core. A source that does not compile (a template, old syntax) is left as it is."""
    cores = str(min(len(os.sched_getaffinity(0)), len(sources)))
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as listing:
        listing.writelines(f"{site}/{source}\n" for source in sources)
        listing.flush()
        command = [str(python), "-I", "-S", "-W", "ignore", "-c", _COMPILE, listing.name, cores]
        run_watched(command, env=env, observer=observer, timeout_s=_COMPILE_S)
