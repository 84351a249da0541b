"""toy-takes-turns-1: An arm keeps its GPU busy for a moment

No issue at all: two such arms must never be at work on one GPU at once, whoever started them.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import os
import time

import torch

SIGNATURE = r"conflicting declaration .*tmp_acc\d+_arr"


def _keep_busy(seconds):
    """Keep the GPU at work; tells which one, and from when to when by the clock that all processes of a host share."""
    x = torch.ones(8, device="cuda")
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        torch.cuda._sleep(10_000_000)
        torch.cuda.synchronize()
    return {"gpu": os.environ["CUDA_VISIBLE_DEVICES"], "began": began, "ended": time.monotonic(), "sum": float(x.sum())}


def control():
    return _keep_busy(2.0)


def baseline():
    return _keep_busy(2.0)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
