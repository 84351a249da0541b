"""pytorch-193265: Inductor does not compile the cumsum of a 0-dimensional constant.

A pass that replaces the cumsum of a constant by an arange reads the size of a dimension that a scalar does not have.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"pointless_cumsum_replacement[^p]*(?:p(?!ointless_cumsum_replacement)[^p]*){0,2000}IndexError: tuple index out of range"


class WrongResult(Exception):
    """The code compiled, and computes something else than it should."""


def _scalar(x):
    return x + torch.tensor(5.0).cumsum(0)


def _vector(x):
    return x + torch.tensor([5.0]).cumsum(0)


def _observe(function):
    got = function(torch.ones(3)).tolist()
    if got != [6.0] * 3:
        raise WrongResult("expected 6 three times, got {} (exact, tolerance 0)".format(got))
    return {"result": str(got)}


def control():
    return _observe(_scalar)


def baseline():
    return _observe(torch.compile(_scalar, fullgraph=True))


def one_element():
    """A vector of one element has the dimension."""
    return _observe(torch.compile(_vector, fullgraph=True))


def no_pattern_matcher():
    return _observe(torch.compile(_scalar, fullgraph=True, options={"pattern_matcher": False}))


def aot_eager():
    return _observe(torch.compile(_scalar, backend="aot_eager", fullgraph=True))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
