"""toy-spins-1: A kernel never comes back

The process waits for its GPU until it is killed; the kernel must die with it, and the next arm find the GPU free.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"conflicting declaration .*tmp_acc\d+_arr"


def _spin(cycles):
    """Keep the GPU at work for so many cycles of its clock."""
    x = torch.ones(8, device="cuda")
    torch.cuda._sleep(cycles)
    torch.cuda.synchronize()
    return {"sum": float(x.sum())}


def control():
    return _spin(1000)


def baseline():
    """A week or so."""
    return _spin(10**15)


def brief():
    return _spin(1000)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
