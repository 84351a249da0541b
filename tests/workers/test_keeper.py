"""What the keeper counts, where its being root would hide a fault. Whole arms: test_execute.py, test_isolation.py."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from workers.keeper import _UNCOUNTABLE, _disk_bytes

NOBODY = 65534
MEGABYTE = 1 << 20


def without_rights(act: Callable[[Path], int]) -> int:
    """What `act` gives in a process that has none, in a folder of its own."""
    answer, says = os.pipe()
    with tempfile.TemporaryDirectory(prefix="kg-keeper-") as folder:
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
