"""toy-launches-1: A Triton kernel is launched, or said to be

The probes must see a launch from Inductor's code and one by hand, and must not see one that was only claimed.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import triton
import triton.language as tl

SIGNATURE = r"conflicting declaration .*tmp_acc\d+_arr"


@triton.jit
def _double(x, y, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(y + at, 2 * tl.load(x + at))


def _launch(x):
    y = torch.empty_like(x)
    _double[(1,)](x, y, SIZE=128)
    return y


def _sum_of(function):
    result = function(torch.ones(128, device="cuda"))
    torch.cuda.synchronize()
    return {"sum": float(result.sum())}


def control():
    """Neither compiled nor launched."""
    return _sum_of(lambda x: 2 * x)


def baseline():
    """Inductor has a kernel of its own before and after the launch."""
    return _sum_of(torch.compile(lambda x: _launch(x + 1) - 2))


def by_hand():
    return _sum_of(_launch)


def only_claimed():
    """Says that it launches, and does not."""
    return _sum_of(lambda x: 2 * x)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
