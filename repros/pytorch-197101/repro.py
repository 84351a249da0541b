"""pytorch-197101: random.seed() in a compiled function does not act on the draws of the first call.

Each call seeds with 0 and draws randint(1, 100), which is 50. The generator was seeded otherwise before.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import random

import torch

SIGNATURE = r"expected the draws 50, 50 and 50, got \[80, 50, 50\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x):
    random.seed(0)
    return x + random.randint(1, 100)


def _unseeded(x):
    return x + random.randint(1, 100)


def _observe(function):
    random.seed(5)
    x = torch.zeros(2)
    got = [int(function(x)[0]) for _ in range(3)]
    if got != [50, 50, 50]:
        raise WrongResult("expected the draws 50, 50 and 50, got {}".format(got))
    return {"draws": got}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, backend="eager"))


def seeded_outside():
    """The seed is set before what is compiled is called."""
    compiled = torch.compile(_unseeded, backend="eager")

    def function(x):
        random.seed(0)
        return compiled(x)

    return _observe(function)


def disabled():
    """Seed and draw stand behind a graph break."""

    @torch.compiler.disable
    def draw():
        random.seed(0)
        return random.randint(1, 100)

    return _observe(torch.compile(lambda x: x + torch.tensor(draw()), backend="eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
