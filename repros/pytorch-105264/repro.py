"""pytorch-105264: a uint8 sum is not wrapped before it is cast to a wider type in Inductor's C++ code.

128 + 128 is 0 in uint8. The generated C++ adds two unsigned chars, which C++ does as int, and casts the 256 to int16.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected \d+, got \d+ \(exact\)"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong number."""


def _twice(x):
    return (x + x).to(torch.int16)


def _observe(function):
    result = function(torch.tensor(128, dtype=torch.uint8))
    if result.item() != 0:
        raise WrongResult("expected 0, got {} (exact)".format(result.item()))
    return {"value": result.item(), "dtype": str(result.dtype)}


def control():
    return _observe(_twice)


def baseline():
    return _observe(torch.compile(_twice, fullgraph=True))


def aot_eager():
    return _observe(torch.compile(_twice, fullgraph=True, backend="aot_eager"))


def cast_to_uint8():
    """The sum counts as uint8 while tracing, and the cast is left out."""

    def function(x):
        return (x + x).to(torch.uint8).to(torch.int16)

    return _observe(torch.compile(function, fullgraph=True))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
