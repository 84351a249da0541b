"""toy-more-work-1: Compiles again for every size

The result is right, and an amount beside it is larger than the control's.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r""


def _observe(total, amount):
    return {"total": total, "recompiles": amount}


def control():
    """The same sum without a compiler."""
    return _observe(torch.total([1, 2, 3]), 2)


def baseline():
    return _observe(torch.compile(torch.total, mode="reduce-overhead")([1, 2, 3]), 7)


def frugal():
    return _observe(torch.compile(torch.total, mode="reduce-overhead")([1, 2, 3]), 2)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
