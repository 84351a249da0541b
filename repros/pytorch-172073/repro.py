"""pytorch-172073: adding complex tensors does not compile where one has no dimensions.

2.5 + 0j and 2.5 + 1j, one of them without dimensions, must add to 5 + 1j, and so must a tensor of one element.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"self\.dim\(\) cannot be 0 to view Complex\w+ as \w+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x, y, scale):
    return x + y, scale * 2


def _with_dimension(x, y, scale):
    shape = torch.broadcast_shapes(x.shape, y.shape)
    return (x.reshape(-1) + y.reshape(-1)).reshape(shape), scale * 2


def _as_pairs(x, y, scale):
    return torch.view_as_complex(torch.view_as_real(x) + torch.view_as_real(y)), scale * 2


def _observe(function, shapes):
    x, y = torch.full([1] * (shapes == "one"), 2.5, dtype=torch.complex64), torch.tensor(2.5 + 1.0j)
    total, doubled = function(x, y, torch.ones(2))
    real, imaginary = total.real.flatten().tolist(), total.imag.flatten().tolist()
    if (real, imaginary, total.shape) != ([5.0], [1.0], x.shape):
        raise WrongResult("expected [5] and [1], got {} and {} of shape {}".format(real, imaginary, list(total.shape)))
    return {"real": real, "imaginary": imaginary, "shape": list(total.shape), "doubled": doubled.tolist()}


def control(shapes="both"):
    return _observe(_suspect, shapes)


def baseline(shapes="both"):
    return _observe(torch.compile(_suspect), shapes)


def with_dimension(shapes="both"):
    return _observe(torch.compile(_with_dimension), shapes)


def as_pairs(shapes="both"):
    return _observe(torch.compile(_as_pairs), shapes)


def aot_eager(shapes="both"):
    return _observe(torch.compile(_suspect, backend="aot_eager"), shapes)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
