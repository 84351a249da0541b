"""toy-forks-daemon-1: Leaves a daemon behind

The baseline passes and leaves a process in a session of its own that holds its output open: it must not live on.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import os
import time

import torch

SIGNATURE = r"conflicting declaration .*tmp_acc\d+_arr"


def control():
    """The same sum without a compiler."""
    return {"total": torch.total([1, 2, 3])}



def baseline():
    """Twice forked, once detached: nobody's child, if nobody looks for it."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.wait()
    return {"total": torch.compile(torch.total, mode="reduce-overhead")([1, 2, 3])}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
