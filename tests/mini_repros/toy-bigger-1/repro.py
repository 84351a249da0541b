"""toy-bigger-1: Takes more memory on 0.0.1

The result is right, and an amount beside it is larger than the control's.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r""


def _observe(total, amount):
    return {"total": total, "peak_bytes": amount}


def control():
    """The same sum without a compiler."""
    return _observe(torch.total([1, 2, 3]), 300_000_000)


def baseline():
    return _observe(torch.compile(torch.total, mode="reduce-overhead")([1, 2, 3]), 900_000_000 if torch.__version__.startswith("0.0.1") else 300_000_000)


def frugal():
    return _observe(torch.compile(torch.total, mode="reduce-overhead")([1, 2, 3]), 300_000_000)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
