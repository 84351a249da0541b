"""pytorch-185246: a compiled bernoulli takes probabilities above 1 and draws ones.

Each arm first draws with probabilities of 1, which must give ones, and then asks for probabilities of 2, which must
be refused.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import re

import torch

SIGNATURE = r"expected probabilities of 2 to be refused, got"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _draw(p):
    return torch.bernoulli(p)


def _observe(function):
    torch.manual_seed(0)
    plain = function(torch.ones(4)).tolist()
    if plain != [1.0] * 4:
        raise WrongResult("expected 1.0 four times, got {}".format(plain))
    try:
        got = function(torch.full((4,), 2.0)).tolist()
    except (RuntimeError, ValueError) as refusal:
        if not re.search(r"p_in|probabilit", str(refusal)):
            raise
        return {"plain": plain, "refused": "the probabilities"}
    raise WrongResult("expected probabilities of 2 to be refused, got {}".format(got))


def control():
    return _observe(_draw)


def baseline():
    return _observe(torch.compile(_draw))


def check_before():
    """The caller looks at them before the compiled function sees them."""
    compiled = torch.compile(_draw)

    def guarded(p):
        if not bool(((p >= 0) & (p <= 1)).all()):
            raise ValueError("probabilities have to be between 0 and 1")
        return compiled(p)

    return _observe(guarded)


def aot_eager():
    """The operator is not decomposed, and so keeps its check."""
    return _observe(torch.compile(_draw, backend="aot_eager"))


def disabled():
    """A compiled caller, with a graph break around the draw."""
    draw = torch.compiler.disable(_draw)
    return _observe(torch.compile(lambda p: draw(p) + 0 * p))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
