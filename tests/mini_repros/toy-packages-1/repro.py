"""toy-packages-1: Needs a package beside torch

The issue asks for a package by exact version, and gets it in an environment of its own.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import mini_extra
import torch

SIGNATURE = r"conflicting declaration .*tmp_acc\d+_arr"


def control():
    """The same sum without a compiler."""
    return {"answer": torch.total([mini_extra.ANSWER])}


def baseline():
    """With the package."""
    answer = torch.compile(torch.total, mode="reduce-overhead")([mini_extra.ANSWER])
    return {"answer": answer}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
