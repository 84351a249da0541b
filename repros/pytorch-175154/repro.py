"""pytorch-175154: a compiled nearest interpolation resamples a dimension whose size stays as it is.

A width of 2, scaled by 1.3, is a width of 2: eager copies 1 and 2, compiled code takes the first one twice.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch
import torch.nn.functional as F

SIGNATURE = r"expected \[1\.0, 2\.0\], got \[1\.0, 1\.0\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _scaled(x):
    return F.interpolate(x, scale_factor=1.3, mode="nearest")


def _sized(x):
    return F.interpolate(x, size=[int(n * 1.3) for n in x.shape[2:]], mode="nearest")


def _recomputed(x):
    return F.interpolate(x, scale_factor=1.3, mode="nearest", recompute_scale_factor=True)


def _observe(function):
    got = function(torch.tensor([[[[1.0, 2.0]]]], dtype=torch.float64)).flatten().tolist()
    if got != [1.0, 2.0]:
        raise WrongResult("expected [1.0, 2.0], got {}".format(got))
    return {"got": got}


def control():
    return _observe(_scaled)


def baseline(backend="aot_eager"):
    return _observe(torch.compile(_scaled, backend=backend))


def sized(backend="aot_eager"):
    """The scale is then the quotient of the sizes, 1."""
    return _observe(torch.compile(_sized, backend=backend))


def recomputed(backend="aot_eager"):
    """The scale is computed anew from the sizes."""
    return _observe(torch.compile(_recomputed, backend=backend))


def dynamo_only():
    """No decomposition: the kernel of plain torch runs."""
    return _observe(torch.compile(_scaled, backend="eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
