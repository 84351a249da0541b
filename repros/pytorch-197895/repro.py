"""pytorch-197895: compiled floor division of floats is one too high where the quotient rounds up to an integer.

1.0 // 0.1, 0.5 // 0.1 and 6.0 // 0.2 must be 9, 4 and 29, as in Python and in eager.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the quotients 9, 4 and 29, got"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(a, b):
    return a // b


def _by_remainder(a, b):
    return torch.round((a - torch.remainder(a, b)) / b)


def _observe(function):
    a, b = torch.tensor([1.0, 0.5, 6.0], dtype=torch.float64), torch.tensor([0.1, 0.1, 0.2], dtype=torch.float64)
    got = function(a, b).tolist()
    if got != [9.0, 4.0, 29.0]:
        raise WrongResult("expected the quotients 9, 4 and 29, got {}".format(got))
    return {"got": got}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect))


def by_remainder():
    """What is divided is a multiple, but for rounding."""
    return _observe(torch.compile(_by_remainder))


def disabled():
    """A graph break around it."""
    divide = torch.compiler.disable(torch.floor_divide)
    return _observe(torch.compile(lambda a, b: divide(a, b) + 0 * a))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
