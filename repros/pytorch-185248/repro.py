"""pytorch-185248: a compiled normal takes negative standard deviations.

The mean is 5. Each arm first draws with standard deviations of 0, which must give fives, and then asks for -1, which
must be refused.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import re

import torch

SIGNATURE = r"expected standard deviations of -1 to be refused, got"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _draw(std):
    return torch.normal(torch.full_like(std, 5.0), std)


def _observe(function):
    torch.manual_seed(0)
    plain = function(torch.zeros(4)).tolist()
    if plain != [5.0] * 4:
        raise WrongResult("expected 5.0 four times, got {}".format(plain))
    try:
        got = function(torch.full((4,), -1.0)).tolist()
    except (RuntimeError, ValueError) as refusal:
        if not re.search(r"std", str(refusal)):
            raise
        return {"plain": plain, "refused": "the standard deviations"}
    raise WrongResult("expected standard deviations of -1 to be refused, got {}".format(got))


def control():
    return _observe(_draw)


def baseline():
    return _observe(torch.compile(_draw))


def check_before():
    """The caller looks at them before the compiled function sees them."""
    compiled = torch.compile(_draw)

    def guarded(std):
        if not bool((std >= 0).all()):
            raise ValueError("std has to be >= 0")
        return compiled(std)

    return _observe(guarded)


def aot_eager():
    """The operator is not decomposed, and so keeps its check."""
    return _observe(torch.compile(_draw, backend="aot_eager"))


def disabled():
    """A compiled caller, with a graph break around the draw."""
    draw = torch.compiler.disable(_draw)
    return _observe(torch.compile(lambda std: draw(std) + 0 * std))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
