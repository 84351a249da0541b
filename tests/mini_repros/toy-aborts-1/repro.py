"""toy-aborts-1: Ends by SIGABRT

The baseline writes the issue's text to standard error and aborts, as a failed check in a C++ library does.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import os
import sys

import torch

SIGNATURE = r"called on a donated buffer"


def control():
    """The same sum without a compiler."""
    return {"total": torch.total([1, 2, 3])}



def baseline():
    """Die as a process does of a failed CHECK in C++."""
    print("Check failed: buffer != nullptr: called on a donated buffer", file=sys.stderr, flush=True)
    os.abort()
    return {"total": torch.total([1])}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
