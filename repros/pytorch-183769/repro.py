"""pytorch-183769: torch.select with an index that is out of range returns what lies behind the tensor when compiled.

A dimension of size 1 has no element 1. Without compiling, selecting it is an IndexError; compiled it has to be an error
too. That eager mode raises is what the control shows.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected an error for index \d+ of size \d+, got a tensor of shape "


class WrongResult(Exception):
    """Something was returned where an error was due."""


def _select(x, index):
    base = x.unsqueeze(1)
    return torch.cat([torch.select(base, 1, 0), torch.select(base, 1, index)], -1)


def _narrow(x, index):
    base = x.unsqueeze(1)
    return torch.cat([base.narrow(1, 0, 1), base.narrow(1, index, 1)], -1).squeeze(1)


def _checked(x, index):
    base = x.unsqueeze(1)
    if not -base.shape[1] <= index < base.shape[1]:
        raise IndexError("index {} is out of range".format(index))
    return torch.cat([torch.select(base, 1, 0), torch.select(base, 1, index)], -1)


def _observe(function):
    x = torch.arange(12.0).reshape(3, 4)
    good = function(x, 0)  # a function that refuses everything has shown nothing
    if good.tolist() != torch.cat([x, x], -1).tolist():
        raise RuntimeError("index 0 does not give what it should: {}".format(good.tolist()))
    try:
        rows = function(x, 1)
    except Exception as refusal:  # its class depends on the release and the backend
        text = str(refusal)
        if not any(word in text for word in ("out of range", "out of bounds", "exceeds dimension size")):
            raise
        return {"refused": type(refusal).__name__, "good": good[0].tolist()}
    raise WrongResult("expected an error for index 1 of size 1, got a tensor of shape {}".format(list(rows.shape)))


def control():
    return _observe(_select)


def baseline():
    return _observe(torch.compile(_select, fullgraph=True, dynamic=False))


def narrow():
    """narrow keeps its own check."""
    return _observe(torch.compile(_narrow, fullgraph=True, dynamic=False))


def check_inside():
    """Sizes are known while compiling: the check costs nothing."""
    return _observe(torch.compile(_checked, dynamic=False))


def aot_eager():
    return _observe(torch.compile(_select, fullgraph=True, dynamic=False, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
