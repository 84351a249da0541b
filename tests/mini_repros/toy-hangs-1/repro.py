"""toy-hangs-1: Waits for ever

The baseline never comes back. Its stacks, dumped shortly before it is stopped, show where it waits.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import time

import torch

SIGNATURE = r"in _wait_for_the_other_thread"

HANG_S = 5


def _wait_for_the_other_thread():
    while True:
        time.sleep(1)


def control():
    """The same sum without a compiler."""
    return {"total": torch.total([1, 2, 3])}


def baseline():
    """Never returns."""
    _wait_for_the_other_thread()
    return {"total": torch.compile(torch.total)([1, 2, 3])}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
