"""pytorch-196467: torch.Tensor of a size makes another shape in compiled code.

torch.Tensor(x.size()) is a tensor of that shape; of a tuple it would be a tensor that holds the numbers.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected a tensor of shape 2 x 3, got 2(?! x)"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x):
    return torch.Tensor(x.size()), x + 1


def _empty(x):
    return torch.empty(x.size()), x + 1


def _unpacked(x):
    return torch.Tensor(*x.size()), x + 1


def _observe(function):
    made, result = function(torch.zeros(2, 3))
    shape = " x ".join(str(number) for number in made.shape)
    if shape != "2 x 3":
        raise WrongResult("expected a tensor of shape 2 x 3, got {}".format(shape))
    return {"shape": shape, "result": result.tolist()}


def _compiled(function):
    return torch.compile(function, fullgraph=True, backend="eager")


def control():
    return _observe(_suspect)


def baseline():
    return _observe(_compiled(_suspect))


def empty():
    """torch.empty takes a size as a size."""
    return _observe(_compiled(_empty))


def unpacked():
    """The numbers are arguments of their own."""
    return _observe(_compiled(_unpacked))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
