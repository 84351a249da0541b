"""pytorch-195214: a scaled bfloat16 value is compared unrounded with its rounded maximum.

Rows are divided by a constant, and how many elements equal their row's maximum is counted (or the maximum is
differentiated, which divides by that count), in eager mode and compiled.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import math

import torch

SIGNATURE = (
    r"expected (the tie counts of eager mode, got \d+ of \d+ rows with other counts|finite gradients, got \d+ of \d+)"
)

SCALE = math.sqrt(80)


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _scaled(x):
    return x / SCALE


def _unscaled(x):
    return x


def _in_float32(x):
    return x.float() / SCALE


def _cast_back(x):
    return (x / SCALE).to(torch.bfloat16)


def _ties(scale, x):
    s = scale(x)
    return (s == s.amax(dim=-1, keepdim=True)).sum(dim=-1)


def _maximum(scale, x):
    return scale(x).amax(dim=-1)


def _compare(how, rows, columns, gradient, scale=_scaled):
    torch.manual_seed(0)
    x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16, requires_grad=gradient)
    if gradient:
        how(_maximum)(scale, x).sum().backward()
        torch.cuda.synchronize()
        bad = int((~torch.isfinite(x.grad)).sum())
        if bad:
            raise WrongResult("expected finite gradients, got {} of {} that are not".format(bad, x.numel()))
        return {"gradients that are not zero": int((x.grad != 0).sum())}
    expected = _ties(scale, x)
    got = how(_ties)(scale, x)
    torch.cuda.synchronize()
    other = int((got != expected).sum())
    if other:
        raise WrongResult("expected the tie counts of eager mode, got {} of {} rows with other counts, {} of them with none, "
                          "tolerance 0".format(other, rows, int((got == 0).sum())))
    return {"rows": rows, "ties": int(got.sum())}


def control(rows=2, columns=1048576, gradient=False):
    """Not compiled."""
    return _compare(lambda function: function, rows, columns, gradient)


def baseline(rows=2, columns=1048576, gradient=False):
    return _compare(torch.compile, rows, columns, gradient)


def emulate_casts(rows=2, columns=1048576, gradient=False):
    options = {"emulate_precision_casts": True}
    return _compare(lambda function: torch.compile(function, options=options), rows, columns, gradient)


def compare_unscaled(rows=2, columns=1048576, gradient=False):
    """Ties and maxima of what was never scaled."""
    return _compare(torch.compile, rows, columns, gradient, _unscaled)


def float32(rows=2, columns=1048576, gradient=False):
    """Scaled in float32, where there is nothing to round."""
    return _compare(torch.compile, rows, columns, gradient, _in_float32)


def cast_back(rows=2, columns=1048576, gradient=False):
    """The graph holds no such cast."""
    return _compare(torch.compile, rows, columns, gradient, _cast_back)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
