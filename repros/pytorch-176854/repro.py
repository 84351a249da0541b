"""pytorch-176854: after detach_() compiled code still reads requires_grad as True.

A tensor that requires a gradient is detached in place and asked whether it requires one, which is false.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected requires_grad False after detach_\(\), got True|expected the branch without a gradient, got the other"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _read(x):
    y = x * 2.0
    y.detach_()
    return y + 1.0, y.requires_grad


def _read_detached(x):
    y = x * 2.0
    y = y.detach()
    return y + 1.0, y.requires_grad


def _read_no_grad(x):
    with torch.no_grad():
        y = x * 2.0
    return y + 1.0, y.requires_grad


def _branch(x):
    y = x * 2.0
    y.detach_()
    if y.requires_grad:
        return y * 100.0, True
    return y + 1.0, False


def _branch_detached(x):
    y = x * 2.0
    y = y.detach()
    if y.requires_grad:
        return y * 100.0, True
    return y + 1.0, False


def _branch_no_grad(x):
    with torch.no_grad():
        y = x * 2.0
    if y.requires_grad:
        return y * 100.0, True
    return y + 1.0, False


_SUSPECT = {"read": _read, "branch": _branch}
_DETACHED = {"read": _read_detached, "branch": _branch_detached}
_NO_GRAD = {"read": _read_no_grad, "branch": _branch_no_grad}


def _observe(function):
    z, requires_grad = function(torch.ones(4, requires_grad=True))
    if z.tolist() == [200.0] * 4:
        raise WrongResult("expected the branch without a gradient, got the other")
    if requires_grad:
        raise WrongResult("expected requires_grad False after detach_(), got True")
    return {"z": z.tolist(), "y requires grad": requires_grad, "z requires grad": z.requires_grad}


def control(kind="read"):
    return _observe(_SUSPECT[kind])


def baseline(kind="read"):
    return _observe(torch.compile(_SUSPECT[kind], backend="eager", fullgraph=True))


def detached(kind="read"):
    """A new tensor, and not the old one changed."""
    return _observe(torch.compile(_DETACHED[kind], backend="eager", fullgraph=True))


def no_grad(kind="read"):
    """Computed without a gradient in the first place."""
    return _observe(torch.compile(_NO_GRAD[kind], backend="eager", fullgraph=True))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
