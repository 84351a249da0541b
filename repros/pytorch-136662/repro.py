"""pytorch-136662: torch.func.grad of a function that adds in place twice is half of what it should be with Inductor.

The reduction of the report by a maintainer: |x| is added twice to a column of zeros; the derivative is two times the sign.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the derivatives -2 and 2, got \[-1\.0, 1\.0\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _sum(x):
    y = torch.zeros_like(x)
    y[:, 0] += x[:, 2].abs()
    y[:, 0] += x[:, 2].abs()
    return y.sum()


def _sum_out_of_place(x):
    first = x[:, 2].abs() + x[:, 2].abs()
    return torch.cat([first.unsqueeze(1), torch.zeros_like(x[:, 1:])], 1).sum()


def _suspect(x):
    return torch.func.grad(_sum)(x)


def _out_of_place(x):
    return torch.func.grad(_sum_out_of_place)(x)


def _observe(function):
    x = torch.tensor([[1.0, 2.0, -3.0], [4.0, 5.0, 6.0]])
    got = function(x)
    if got[:, 2].tolist() != [-2.0, 2.0]:
        raise WrongResult("expected the derivatives -2 and 2, got {}".format(got[:, 2].tolist()))
    return {"gradient": got.tolist()}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, fullgraph=True))


def out_of_place():
    """Nothing is written twice."""
    return _observe(torch.compile(_out_of_place, fullgraph=True))


def aot_eager():
    """Inductor's pass that makes operations in place again does not run."""
    return _observe(torch.compile(_suspect, backend="aot_eager", fullgraph=True))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
