"""pytorch-145445: a random.Random passed to a compiled function draws the number of the first call again and again.

Three draws of randint(1, 100) from Random(0) are 50, 98 and 54.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import random

import torch

SIGNATURE = r"expected the draws 50, 98 and 54, got \[50, 50, 50\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x, rng):
    return x + rng.randint(1, 100)


def _module_level(x):
    return x + random.randint(1, 100)


def _add(x, number):
    return x + number


def _observe(function, rng):
    x = torch.zeros(2)
    got = [int(function(x, rng)[0]) for _ in range(3)]
    following = rng.randint(1, 100)
    if got != [50, 98, 54]:
        raise WrongResult("expected the draws 50, 98 and 54, got {}; the next one outside is {}, 6 was expected".format(
            got, following))
    return {"draws": got, "next": following}


def control():
    return _observe(_suspect, random.Random(0))


def baseline():
    return _observe(torch.compile(_suspect, backend="eager"), random.Random(0))


def module_level():
    """The functions of the module are called anew each time."""
    compiled = torch.compile(_module_level, backend="eager")
    random.seed(0)
    return _observe(lambda x, rng: compiled(x), random)


def drawn_outside():
    """The number is an argument of what is compiled."""
    compiled = torch.compile(_add, backend="eager")
    return _observe(lambda x, rng: compiled(x, torch.tensor(rng.randint(1, 100))), random.Random(0))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
