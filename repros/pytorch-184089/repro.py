"""pytorch-184089: flip of a tensor without dimensions does not compile.

There is nothing to turn round: 3 stays 3, and one is added to it.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"idx\[dim\] = \(sizes\[dim\] - 1\) - idx\[dim\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x):
    return x.flip(0) + 1


def _with_dimension(x):
    return x.reshape(-1).flip(0).reshape(x.shape) + 1


def _asked(x):
    return (x.flip(0) if x.dim() else x) + 1


def _observe(function):
    result = function(torch.tensor(3.0))
    got = result.item()
    if got != 4.0:
        raise WrongResult("expected 4, got {}".format(got))
    return {"got": got, "shape": list(result.shape)}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect))


def with_dimension():
    return _observe(torch.compile(_with_dimension))


def asked():
    """Only what has a dimension is flipped."""
    return _observe(torch.compile(_asked))


def aot_eager():
    return _observe(torch.compile(_suspect, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
