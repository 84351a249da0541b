"""pytorch-196596: addmm with beta=0, compiled with Inductor on the CPU, lets NaN of the ignored input into the result.

With beta=0 torch.addmm must not look at its first argument. A row of ones times a matrix of ones is 4 everywhere, and
the first argument is all NaN.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected 5 everywhere, for beta=0 ignores the first argument; got \d+ of \d+ elements NaN"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(ignored, a, b):
    return torch.addmm(ignored, a, b, beta=0) + 1


def _without_it(ignored, a, b):
    return torch.mm(a, b) + 1


def _observe(function):
    result = function(torch.full((4,), float("nan")), torch.ones(1, 4), torch.ones(4, 4))
    wrong = int(result.isnan().sum())
    if wrong:
        raise WrongResult("expected 5 everywhere, for beta=0 ignores the first argument; got {} of {} elements NaN"
                          .format(wrong, result.numel()))
    return {"result": result.tolist()}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, fullgraph=True))


def mm():
    """The product alone, which has no ignored argument."""
    return _observe(torch.compile(_without_it, fullgraph=True))


def aot_eager():
    """Without Inductor and its decompositions."""
    return _observe(torch.compile(_suspect, fullgraph=True, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
