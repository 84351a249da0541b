"""toy-exits-silently-1: Exits with 0 and says nothing

The baseline leaves by os._exit(0) before it returns: an exit status of 0 is no proof of anything, so inconclusive.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import os

import torch

SIGNATURE = r"conflicting declaration .*tmp_acc\d+_arr"


def control():
    """The same sum without a compiler."""
    return {"total": torch.total([1, 2, 3])}



def baseline():
    """Gone before it could say what it saw."""
    torch.compile(torch.total, mode="reduce-overhead")([1, 2, 3])
    os._exit(0)
    return {"total": 6}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
