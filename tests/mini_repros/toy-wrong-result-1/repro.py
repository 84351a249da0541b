"""toy-wrong-result-1: Wrong numbers without an error

With mode max-autotune the sum is one too large on torch 0.0.1, and nothing says so; 0.0.2 is right.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r""


class WrongResult(Exception):
    """The call came back with a value that is wrong."""



def _sum(mode):
    total = torch.compile(torch.total, mode=mode)([1, 2, 3])
    if total != 6:
        raise WrongResult("expected 6, got {}, tolerance 0".format(total))
    return {"total": total}


def control():
    """The same sum without a compiler."""
    return {"total": torch.total([1, 2, 3])}


def baseline():
    """Silently wrong on 0.0.1."""
    return _sum("max-autotune")


def reduce_overhead():
    """Effective: another mode."""
    return _sum("reduce-overhead")


def check():
    """Makes it loud, which cures nothing."""
    total = torch.compile(torch.total, mode="max-autotune")([1, 2, 3])
    if total != torch.total([1, 2, 3]):
        raise RuntimeError("the compiled sum differs from the plain one")
    return {"total": total}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
