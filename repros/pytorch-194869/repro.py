"""pytorch-194869: gradcheck with fast_mode fails a right gradient where an output before it needs no gradient.

The function returns zeros that do not require a gradient, and twice its argument. Both modes of gradcheck have to
accept it.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch
from torch.autograd import gradcheck

SIGNATURE = r"Jacobian mismatch for output 0 with respect to input 0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x):
    return torch.zeros_like(x).detach(), x * 2


def _ordered(x):
    return _suspect(x)[::-1]


def _alone(x):
    return _suspect(x)[1]


def _observe(function, fast_mode):
    x = torch.arange(3, dtype=torch.float64, requires_grad=True)
    passed = gradcheck(function, (x,), fast_mode=fast_mode)
    if not passed:
        raise WrongResult("expected gradcheck to accept 2 * x, got {}".format(passed))
    (gradient,) = torch.autograd.grad(_suspect(x)[1].sum(), x)
    return {"passed": passed, "gradient": gradient.tolist()}


def control():
    """The slow mode."""
    return _observe(_suspect, False)


def baseline():
    return _observe(_suspect, True)


def alone():
    """Only the output that has a gradient is returned to gradcheck."""
    return _observe(_alone, True)


def slow_mode():
    """Every element of the Jacobian is compared."""
    return _observe(_suspect, False)


def ordered():
    """The output that has a gradient comes first."""
    return _observe(_ordered, True)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
