"""toy-flaky-1: Fails every other time

Attempts on one worker take numbers; odd ones fail with the issue's text and even ones pass, in whatever order they run.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import fcntl
import os
import pathlib
import zlib

import torch

SIGNATURE = r"conflicting declaration .*tmp_acc\d+_arr"


def control():
    """The same sum without a compiler."""
    return {"total": torch.total([1, 2, 3])}



def _number():
    """The next one, counted where attempts may write beside their own folders, by what these stand in.

    By its inode too: a folder of the same name that an earlier test left behind is another one.
    """
    folder = pathlib.Path(os.environ.get("TMPDIR", "/tmp")).parent.parent
    known = "{}:{}".format(folder, folder.stat().st_ino)
    name = "toy-flaky-{:08x}-{}".format(zlib.crc32(known.encode()), torch.__version__)
    with open(pathlib.Path("/dev/shm") / name, "ab") as counter:
        fcntl.flock(counter, fcntl.LOCK_EX)
        counter.write(b".")
        return counter.tell()


def baseline():
    """Odd attempts fail."""
    number = _number()
    mode = "reduce-overhead" if number % 2 == 0 else "default"
    if mode == "default":
        raise RuntimeError("error: conflicting declaration 'long tmp_acc{}_arr [2]'".format(number))
    return {"number": number, "total": torch.compile(torch.total, mode=mode)([1, 2, 3])}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
