"""pytorch-178480: a compiled celu takes alpha = 0 and returns minus zero and NaN.

Plain torch refuses alpha = 0. Each arm first computes celu with alpha = 1, which must agree with the formula, and
then asks for alpha = 0, which must be refused with a message that says so.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import math

import torch

SIGNATURE = r"expected alpha = 0 to be refused, got \["


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _celu(x, alpha):
    return torch.celu_(x, alpha)


def _checked(x, alpha):
    if alpha == 0:
        raise ValueError("alpha cannot be 0")
    return torch.celu_(x, alpha)


def _observe(function):
    plain = function(torch.tensor([-2.0, 0.0, 3.0]), 1.0).tolist()
    right = [math.exp(-2) - 1, 0.0, 3.0]
    if max(abs(a - b) for a, b in zip(plain, right)) > 1e-5:
        raise WrongResult("expected celu of -2, 0 and 3 to be {}, got {} (tolerance 1e-5)".format(right, plain))
    try:
        got = function(torch.tensor([-2.0, 0.0, 3.0]), 0.0).tolist()
    except Exception as refusal:
        if "alpha cannot be 0" not in str(refusal):
            raise
        return {"celu": plain, "refused": "alpha cannot be 0"}
    raise WrongResult("expected alpha = 0 to be refused, got {}".format(got))


def control():
    return _observe(_celu)


def baseline():
    return _observe(torch.compile(_celu, dynamic=True))


def check_before():
    """The caller looks at alpha before the compiled function sees it."""
    compiled = torch.compile(_celu, dynamic=True)

    def guarded(x, alpha):
        if alpha == 0:
            raise ValueError("alpha cannot be 0")
        return compiled(x, alpha)

    return _observe(guarded)


def check_inside():
    """What alpha is is known while the graph is traced."""
    return _observe(torch.compile(_checked, dynamic=True))


def aot_eager():
    """The operator is not decomposed, and so keeps its check."""
    return _observe(torch.compile(_celu, dynamic=True, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
