"""pytorch-143566: compiled for the CPU, a shift by 64 bits returns the number unshifted.

1000 << 64 and 1000 >> 64 of int64 are 0 in eager.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected 1000 shifted by 64 to be 0, got 1000"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _left(a, b):
    return torch.bitwise_left_shift(a, b)


def _right(a, b):
    return torch.bitwise_right_shift(a, b)


def _left_limited(a, b):
    return torch.where(b < 64, torch.bitwise_left_shift(a, b.clamp(max=63)), 0)


def _right_limited(a, b):
    return torch.bitwise_right_shift(a, b.clamp(max=63))


def _observe(function):
    three = function(torch.tensor(1000), torch.tensor(3)).item()
    got = function(torch.tensor(1000), torch.tensor(64)).item()
    if got != 0:
        raise WrongResult("expected 1000 shifted by 64 to be 0, got {}".format(got))
    return {"by_3": three, "by_64": got}


def control(shift="left"):
    return _observe({"left": _left, "right": _right}[shift])


def baseline(shift="left"):
    return _observe(torch.compile({"left": _left, "right": _right}[shift]))


def limited(shift="left"):
    """No shift by 64 or more reaches the kernel."""
    return _observe(torch.compile({"left": _left_limited, "right": _right_limited}[shift]))


def disabled(shift="left"):
    """A graph break around it."""
    function = torch.compiler.disable({"left": _left, "right": _right}[shift])
    return _observe(torch.compile(lambda a, b: function(a, b) + 0 * a))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
