"""pytorch-142399: reading a field of a NamedTuple that overrides __getitem__ goes through that __getitem__ once compiled.

A pair of tensors indexes both of them when it is indexed. A compiled function reads its first field, twice; it must get
the tensor (1, 2) both times.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
from typing import NamedTuple

import torch

SIGNATURE = r"""can only concatenate tuple \(not "int"\) to tuple|expected \[2\.0, 3\.0\], got"""


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Pair(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor

    def __getitem__(self, index):
        return _Pair(tuple.__getitem__(self, 0)[index], tuple.__getitem__(self, 1)[index])


class _WithTake(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor

    def take(self, index):
        return _WithTake(self.a[index], self.b[index])


class _Object:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __getitem__(self, index):
        return _Object(self.a[index], self.b[index])


def _first(pair):
    return pair.a + 1


def _unpacked(pair):
    a, b = pair
    return a + 1


def _observe(function, kind):
    x = torch.tensor([1.0, 2.0])
    told = [function(kind(x, x * 10)).tolist() for _ in range(2)]
    for result in told:
        if result != [2.0, 3.0]:
            raise WrongResult("expected [2.0, 3.0], got {} (tolerance 0)".format(result))
    return {"first": told[0], "second": told[1]}


def _compile(function):
    return torch.compile(function, backend="eager")


def control():
    return _observe(_first, _Pair)


def baseline():
    return _observe(_compile(_first), _Pair)


def plain_object():
    return _observe(_compile(_first), _Object)


def own_method():
    return _observe(_compile(_first), _WithTake)


def field_as_argument():
    """The fields are read before the compiled function is called."""
    compiled = _compile(lambda a: a + 1)
    return _observe(lambda pair: compiled(pair.a), _Pair)


def unpacked():
    return _observe(_compile(_unpacked), _Pair)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
