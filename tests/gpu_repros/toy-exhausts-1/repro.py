"""toy-exhausts-1: An arm takes memory until the GPU has none left

No fault of any build: the attempt says nothing, and the memory is there again for the next arm.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"conflicting declaration .*tmp_acc\d+_arr"


def _take(gigabytes):
    """Take so many gigabytes; None: all there are."""
    blocks = []
    while gigabytes is None or len(blocks) < gigabytes:
        blocks.append(torch.empty(1 << 30, device="cuda", dtype=torch.uint8))
    torch.cuda.synchronize()
    return {"gigabytes": len(blocks)}


def control():
    return _take(1)


def baseline():
    return _take(None)


def modest():
    return _take(1)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
