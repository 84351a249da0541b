"""pytorch-174891: adding a complex constant of one value adds its real part to the imaginary part as well.

1 + 0j everywhere plus a column of 1 + 0j that is made in the compiled function must be 2 + 0j everywhere.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected \[2, 2\] and \[0, 0\] in each row, got \[\[2\.0, 2\.0\], \[2\.0, 2\.0\]\] and \[\[1\.0, 1\.0\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x, scale):
    column = torch.ones(2, 1, dtype=torch.complex64)
    return x + column, scale * 2


def _by_parts(x, scale):
    column = torch.ones(2, 1, dtype=torch.complex64)
    return torch.complex(x.real + column.real, x.imag + column.imag), scale * 2


def _as_pairs(x, scale):
    column = torch.ones(2, 1, dtype=torch.complex64)
    return torch.view_as_complex(torch.view_as_real(x) + torch.view_as_real(column)), scale * 2


def _observe(function):
    x = torch.full((2, 2), 1.0, dtype=torch.complex64)
    total, doubled = function(x, torch.ones(2))
    real, imaginary = total.real.tolist(), total.imag.tolist()
    if (real, imaginary) != ([[2.0, 2.0]] * 2, [[0.0, 0.0]] * 2):
        raise WrongResult("expected [2, 2] and [0, 0] in each row, got {} and {}".format(real, imaginary))
    return {"real": real, "imaginary": imaginary, "doubled": doubled.tolist()}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect))


def by_parts():
    return _observe(torch.compile(_by_parts))


def as_pairs():
    """Tensors of floats are added, whose last dimension is the pair of real and imaginary part."""
    return _observe(torch.compile(_as_pairs))


def disabled():
    """A graph break around the addition."""
    add = torch.compiler.disable(torch.add)
    return _observe(torch.compile(lambda x, scale: (add(x, torch.ones(2, 1, dtype=torch.complex64)), scale * 2)))


def aot_eager():
    return _observe(torch.compile(_suspect, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
