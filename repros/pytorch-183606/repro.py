"""pytorch-183606: compiled torch.frac returns -0.0 where eager returns 0.0.

One over the fractions of -0.0, -1.0, -2.5 and 3.0: the zeros are positive, so that three of the four are plus infinity.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected inf from -0\.0 and -1\.0, got"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x):
    return 1 / torch.frac(x)


def _by_trunc(x):
    return 1 / (x - torch.trunc(x))


def _observe(function):
    got = [str(value) for value in function(torch.tensor([-0.0, -1.0, -2.5, 3.0])).tolist()]
    if got[:2] != ["inf", "inf"]:
        raise WrongResult("expected inf from -0.0 and -1.0, got {} and {}".format(*got))
    if got[2:] != ["-2.0", "inf"]:
        raise WrongResult("expected -2.0 and inf, got {}".format(got[2:]))
    return {"got": got}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect))


def by_trunc():
    """The sum that eager's kernel computes."""
    return _observe(torch.compile(_by_trunc))


def disabled():
    """A graph break around it."""
    frac = torch.compiler.disable(torch.frac)
    return _observe(torch.compile(lambda x: 1 / frac(x)))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
