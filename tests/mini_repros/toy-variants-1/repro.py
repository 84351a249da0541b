"""toy-variants-1: Fails for large sizes only

With sizes above 100 the default mode fails on torch 0.0.1; below it there is nothing wrong. A cell is affected if any variant is.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"conflicting declaration .*tmp_acc\d+_arr"


def control(size=10):
    """The same sum without a compiler."""
    return {"total": torch.total(range(size))}


def baseline(size=10):
    """Large sums take the mode that fails."""
    mode = "default" if size > 100 else "reduce-overhead"
    return {"total": torch.compile(torch.total, mode=mode)(range(size))}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
