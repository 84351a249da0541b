"""pytorch-143978: sin(atan(x)) of a NaN is 1 once compiled for the CPU.

The reciprocal root of a negative number is NaN, and so is what is computed from it.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected NaN of \[[-\d., ]+\], got \[(?:nan, )*1\.0\b"

_NUMBERS = {
    "ten": [0.7886758446693420, -1.1796921491622925, 0.5152440071105957, 1.4106913805007935, 1.3812966346740723,
            0.5720621347427368, 1.7286888360977173, -2.2948377132415771, -0.3201593160629272, 1.3686311244964600],
    "one": [-1.1796921491622925],
}


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x):
    return torch.sin(torch.positive(torch.atan(torch.angle(torch.rsqrt(x)))))


def _without_angles(x):
    x = torch.angle(torch.rsqrt(x))
    return x / torch.sqrt(1 + x * x)


def _kept(x):
    x = torch.angle(torch.rsqrt(x))
    return torch.where(torch.isnan(x), x, torch.sin(torch.atan(x)))


def _observe(function, numbers):
    x = torch.tensor(_NUMBERS[numbers])
    result = function(x)
    got = result.tolist()
    if torch.isnan(result).tolist() != (x < 0).tolist() or result[x > 0].any():
        raise WrongResult("expected NaN of {}, got {}".format(x[x < 0].tolist(), result[x < 0].tolist()))
    return {"got": [str(value) for value in got]}


def control(numbers="ten"):
    return _observe(_suspect, numbers)


def baseline(numbers="ten"):
    return _observe(torch.compile(_suspect), numbers)


def without_angles(numbers="ten"):
    """The sine of an arc tangent is algebraic."""
    return _observe(torch.compile(_without_angles), numbers)


def kept(numbers="ten"):
    """NaN is put back where it was."""
    return _observe(torch.compile(_kept), numbers)


def aot_eager(numbers="ten"):
    return _observe(torch.compile(_suspect, backend="aot_eager"), numbers)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
