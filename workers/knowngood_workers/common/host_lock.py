"""Locks that all processes of a host respect, whoever's they are: files among its temporary ones, held by `flock`.

A lock ends with its holder's life.
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOOK_S = 0.2


def lock_folder(name: str) -> Path:
    """Where locks of this host are: a folder that everybody may write, like the one it stands in."""
    folder = Path(tempfile.gettempdir()) / name
    with suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(0o1777)
    return folder


def take_lock(path: Path) -> int | None:
    """A descriptor that holds the lock until it is closed, if only by the death of this process; None where it is held.

    Raises OSError where the file can be neither opened nor made.
    """
    lock = _open_lock(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.stat().st_ino == os.fstat(lock).st_ino:
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass  # held; or removed by whoever tidies up temporary files, so that the lock is nobody's
    except OSError:
        os.close(lock)
        raise
    os.close(lock)
    return None


def _open_lock(path: Path) -> int:
    """Another user's file is opened without O_CREAT, which the kernel forbids in folders like this one
    (fs.protected_regular), and to be read: that is enough for a lock, and nothing is ever written.
    """
    while True:
        with suppress(FileNotFoundError):
            return os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with suppress(FileExistsError):
            made = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CREAT | os.O_EXCL, 0o644)
            os.fchmod(made, 0o644)  # whatever the umask says: other users must be able to open it
            return made


@contextmanager
def turn(name: str, at_once: int, on_wait: Callable[[], object]) -> Iterator[None]:
    """Be one of at most `at_once` on this host that do what `name` says; `on_wait` is called while others are at it.

    A host whose temporary files cannot be locked sets no limit: order is a courtesy here, and no promise.
    """
    held = None
    with suppress(OSError):
        folder = lock_folder(f"knowngood-{name}")
        while held is None:
            held = next((lock for n in range(at_once) if (lock := take_lock(folder / f"{n}.lock")) is not None), None)
            if held is None:
                on_wait()
                time.sleep(_LOOK_S)
    try:
        yield
    finally:
        if held is not None:
            os.close(held)
