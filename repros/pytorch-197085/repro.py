"""pytorch-197085: random.shuffle and random.sample in a compiled function repeat the order of the first call.

Three calls of one compiled function draw an order of eight numbers each. They must be the three orders that the same seed
gives without the compiler.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import random

import torch

SIGNATURE = r"expected three orders, got \[[\d, ]+\] three times"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _shuffle(x):
    items = list(range(8))
    random.shuffle(items)
    return x + 1, items


def _sample(x):
    return x + 1, random.sample(list(range(8)), 8)


_DRAWS = {"shuffle": _shuffle, "sample": _sample}


def _observe(function, draw):
    random.seed(0)
    expected = [_DRAWS[draw](torch.zeros(2))[1] for _ in range(3)]
    random.seed(0)
    got = [[int(item) for item in function(torch.zeros(2))[1]] for _ in range(3)]
    if got != expected and got[0] == got[1] == got[2]:
        raise WrongResult("expected three orders, got {} three times".format(got[0]))
    if got != expected:
        raise WrongResult("expected the orders {}, got {}".format(expected, got))
    return {"first": got[0], "second": got[1], "third": got[2]}


def control(draw="shuffle"):
    return _observe(_DRAWS[draw], draw)


def baseline(draw="shuffle"):
    return _observe(torch.compile(_DRAWS[draw], backend="eager"), draw)


def _take(x, order):
    return x + 1, order


def outside(draw="shuffle"):
    """The order is drawn by the caller."""
    step = torch.compile(_take, backend="eager")
    return _observe(lambda x: step(x, torch.tensor(_DRAWS[draw](x)[1])), draw)


def disabled(draw="shuffle"):
    """A graph break around the draw."""
    drawn = torch.compiler.disable(_DRAWS[draw])

    def _step(x):
        x, order = drawn(x)
        return x + 1, order

    return _observe(torch.compile(_step, backend="eager"), draw)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
