"""compile-1: a sum that torch.compile turns into C++; what it needs of a machine is what every such issue needs."""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"conflicting declaration .*tmp_acc\d+_arr"


def _count(x):
    return (x > 0).sum(0)


def control():
    """Not compiled."""
    return {"total": int(_count(torch.ones(64, 6)).sum())}


def baseline():
    return {"total": int(torch.compile(_count)(torch.ones(64, 6)).sum())}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
