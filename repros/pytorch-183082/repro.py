"""pytorch-183082: argmax or argmin of a transposed matrix gives the index in memory order when compiled for the CPU.

A matrix of 4 x 6 zeros holds its one extreme at row 1, column 4. In the transposed matrix that is row 4, column 1, so
that the flat index is 4 * 4 + 1 = 17. In memory it stands at 1 * 6 + 4 = 10.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected index \d+ \(exactly\), got \d+\b"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _argmax(x):
    x.sin_()
    return x.t().argmax()


def _flattened(x):
    x.sin_()
    return x.t().reshape(-1).argmax()


def _converted(x):
    index = x.sin_().argmax()
    rows, columns = x.shape
    return index % columns * rows + index // columns


def _new_tensor(x):
    return x.sin().t().argmax()


def _contiguous(x):
    x.sin_()
    return x.t().contiguous().argmax()


def _observe(function):
    x = torch.zeros(4, 6)
    x[1, 4] = 0.5
    index = int(function(x))
    if index != 17:
        raise WrongResult("expected index 17 (exactly), got {}".format(index))
    return {"index": index}


def control():
    return _observe(_argmax)


def baseline():
    return _observe(torch.compile(_argmax))


def flatten_first():
    """Of one dimension, there is one order only."""
    return _observe(torch.compile(_flattened))


def convert_index():
    """argmax of the matrix as it lies in memory; the index is computed from that."""
    return _observe(torch.compile(_converted))


def aot_eager():
    return _observe(torch.compile(_argmax, backend="aot_eager"))


def out_of_place():
    """sin instead of sin_: the transposed reduction is the same."""
    return _observe(torch.compile(_new_tensor))


def contiguous():
    """The copy is fused into the reduction."""
    return _observe(torch.compile(_contiguous))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
