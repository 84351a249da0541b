"""The supervisor's counts, where its being root would hide a fault. Whole arms: tests/workers/agent."""

import mmap
import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from knowngood_workers.standalone.sandbox import be_private
from knowngood_workers.standalone.supervisor import _UNCOUNTABLE, _disk_bytes, _memory_bytes, _memory_shared_once

NOBODY = 65534
MEGABYTE = 1 << 20


def without_rights(act: Callable[[Path], int]) -> int:
    """The result of `act` in a process without rights, in a folder of its own."""
    answer, says = os.pipe()
    with tempfile.TemporaryDirectory(prefix="kg-supervisor-") as folder:
        pid = os.fork()
        if pid == 0:
            try:
                if os.geteuid() == 0:
                    os.chown(folder, NOBODY, NOBODY)
                    os.setgroups([])
                    os.setresgid(NOBODY, NOBODY, NOBODY)
                    os.setresuid(NOBODY, NOBODY, NOBODY)
                os.write(says, str(act(Path(folder))).encode())
            finally:
                os._exit(0)
        os.close(says)
        os.waitpid(pid, 0)
        with os.fdopen(answer) as said:
            return int(said.read())


@pytest.mark.parametrize("mode", [0, 0o400], ids=["shut", "listed and no more"])
@pytest.mark.parametrize("where", ["in it", "below it"])
def test_what_lies_in_a_folder_that_is_shut_counts_as_too_much(mode: int, where: str) -> None:
    def count(scratch: Path) -> int:
        folder = scratch / "shut"
        holder = folder if where == "in it" else folder / "below"
        holder.mkdir(parents=True)
        (holder / "file").write_bytes(os.urandom(MEGABYTE))
        assert MEGABYTE <= _disk_bytes(str(scratch)) < 2 * MEGABYTE
        folder.chmod(mode)
        return _disk_bytes(str(scratch))

    assert without_rights(count) == _UNCOUNTABLE


def test_the_files_of_processes_that_hide_are_counted_once() -> None:
    """They are the libraries that all of them have mapped; what each shares with which is not told of them."""

    def count(folder: Path) -> int:
        (folder / "library").write_bytes(bytes(32 * MEGABYTE))
        children = [start_hidden(folder / "library") for _ in range(4)]
        try:
            whole, once = sum(map(_memory_bytes, children)), _memory_shared_once(children)
        finally:
            for pid in children:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        assert whole > 128 * MEGABYTE
        return whole - once

    assert without_rights(count) > 3 * 32 * MEGABYTE


def start_hidden(library: Path) -> int:
    ready, says = os.pipe()
    pid = os.fork()
    if pid == 0:
        be_private()
        with library.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            os.write(says, bytes(1 + sum(mapped[at] for at in range(0, len(mapped), mmap.PAGESIZE))))
            signal.pause()
    os.read(ready, 1)
    return pid
