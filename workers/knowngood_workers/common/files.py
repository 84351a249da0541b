# ruff: noqa: PTH208
# By descriptors, of which pathlib knows nothing.
"""Files that are there whole or not at all, whoever dies while they are written; files that an arm may have put there,
read; and folders that an arm could write to, removed whatever it left there.

In a removal no link is followed, nothing but folders is opened, nothing recurses, and no path is longer than one name:
a folder 10,000 deep, modes that shut us out and files that are immutable cost time and no more. What is mounted is left
alone.
"""

import errno
import fcntl
import json
import os
import secrets
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


def write_whole(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    making = path.with_name(f"{path.name}.{os.getpid()}.making")
    making.write_text(text, encoding="utf-8")
    making.replace(path)


def read_json(path: Path) -> Any:  # noqa: ANN401 - what JSON holds
    """A file of ours; None where it is not there, or is damaged."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def read_regular(path: Path, at_most: int = 1 << 16) -> str:
    """The end of a text that an arm may have put there; of anything but a regular file, nothing.

    A pipe in its place would never end, and a link may lead to a file of ours.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return ""
        file.seek(max(status.st_size - at_most, 0))
        return file.read(at_most).decode(errors="replace")


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602
_KEPT_BY = 0x10 | 0x20  # immutable, append only
_OURS = 0o700


def remove_tree(folder: Path) -> bool:
    """Remove a folder and all that is in it; False where something stays. Nothing is raised.

    What lies deeper is moved to the top, one folder at a time: so two descriptors are enough for any depth.
    """
    try:
        with _opened(str(folder), None) as top:
            _empty(top)
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _empty(top: int) -> None:
    """Round after round, until a round finds nothing but what could not be removed."""
    stuck: set[str] = set()
    while names := [name for name in os.listdir(top) if name not in stuck]:
        for name in names:
            try:
                if not _remove(top, name):
                    _lift_out(top, name)
            except OSError:
                stuck.add(name)


def _remove(parent: int, name: str) -> bool:
    """False for a folder that is not empty. Raises OSError where it stays, as what is mounted does."""
    with suppress(FileNotFoundError):
        is_folder = stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        remove = os.rmdir if is_folder else os.unlink
        try:
            try:
                remove(name, dir_fd=parent)
            except PermissionError:
                _unlock(name, parent)
                remove(name, dir_fd=parent)
        except OSError as problem:
            if problem.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise
            return False
    return True


def _lift_out(top: int, name: str) -> None:
    """Empty a folder by moving the folders in it to the top, and remove it."""
    with _opened(name, top) as folder:
        for inner in os.listdir(folder):
            with suppress(OSError):  # then this folder stays
                if not _remove(folder, inner):
                    with _opened(inner, folder):  # made ours: a folder is moved by who may write into it
                        os.rename(inner, secrets.token_hex(8), src_dir_fd=folder, dst_dir_fd=top)
    os.rmdir(name, dir_fd=top)


@contextmanager
def _opened(name: str, parent: int | None) -> Iterator[int]:
    """A folder, made ours where it was shut to us."""
    try:
        descriptor = os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:
        _unlock(name, parent)
        descriptor = os.open(name, _FOLDER, dir_fd=parent)
    try:
        _free(descriptor)
        with suppress(OSError):
            os.fchmod(descriptor, _OURS)
        yield descriptor
    finally:
        os.close(descriptor)


def _unlock(name: str, parent: int | None) -> None:
    """Take from a file or folder what keeps it from being removed; anything else may not even be opened to look."""
    with suppress(OSError):
        looked_at = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            mode = os.fstat(looked_at).st_mode
            itself = f"/proc/self/fd/{looked_at}"
            if stat.S_ISDIR(mode):
                os.chmod(itself, _OURS)  # noqa: PTH101 - of what was opened, whatever has its name by now
            if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
                descriptor = os.open(itself, os.O_RDONLY | os.O_CLOEXEC)
                _free(descriptor)
                os.close(descriptor)
        finally:
            os.close(looked_at)


def _free(descriptor: int) -> None:
    """From being immutable, where a file system knows of it."""
    with suppress(OSError):
        (flags,) = struct.unpack("L", fcntl.ioctl(descriptor, _GET_FLAGS, bytes(struct.calcsize("L"))))
        if flags & _KEPT_BY:
            fcntl.ioctl(descriptor, _SET_FLAGS, struct.pack("L", flags & ~_KEPT_BY))
