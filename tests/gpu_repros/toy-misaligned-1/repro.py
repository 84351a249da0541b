"""toy-misaligned-1: A kernel reads floats from an odd address

The fault poisons the CUDA context of its process; the next arm on the same GPU must know nothing of it.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import triton
import triton.language as tl

SIGNATURE = r"misaligned address"


@triton.jit
def _copy_floats(x, y, SKIP: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    floats = (x + SKIP).to(tl.pointer_type(tl.float32))
    tl.store(y + at, tl.load(floats + at))


def _read_behind(skip):
    """Read 128 floats that begin `skip` bytes behind an aligned address."""
    x = torch.zeros(1024, device="cuda", dtype=torch.uint8)
    y = torch.ones(128, device="cuda")
    _copy_floats[(1,)](x, y, SKIP=skip, SIZE=128)
    torch.cuda.synchronize()
    return {"sum": float(y.sum()), "gpu": torch.cuda.get_device_name()}


def control():
    """No kernel of ours."""
    return {"sum": float(torch.zeros(128, device="cuda").sum())}


def baseline():
    return _read_behind(1)


def aligned():
    return _read_behind(4)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
