"""pytorch-193757: a compiled binary_cross_entropy takes targets above 1 and returns a negative loss.

The prediction is 1 everywhere. Each arm first computes the loss with targets 0.75, which must come out as 25 (the
logarithm of 0 is taken as -100), and then asks for targets 1.5, which must be refused with a message that says so.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch
import torch.nn.functional as F

SIGNATURE = r"expected targets of 1\.5 to be refused, got the loss"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _loss(target):
    return F.binary_cross_entropy(torch.ones_like(target), target)


def _observe(function):
    plain = float(function(torch.full((4, 4), 0.75)))
    if abs(plain - 25) > 1e-3:
        raise WrongResult("expected the loss 25 with targets of 0.75, got {} (tolerance 1e-3)".format(plain))
    try:
        got = float(function(torch.full((4, 4), 1.5)))
    except (RuntimeError, ValueError) as refusal:
        if "between 0 and 1" not in str(refusal):
            raise
        return {"loss": plain, "refused": "between 0 and 1"}
    raise WrongResult("expected targets of 1.5 to be refused, got the loss {}".format(got))


def control():
    return _observe(_loss)


def baseline():
    return _observe(torch.compile(_loss))


def check_before():
    """The caller looks at the targets before the compiled loss sees them."""
    compiled = torch.compile(_loss)

    def guarded(target):
        if not bool(((target >= 0) & (target <= 1)).all()):
            raise ValueError("targets have to be between 0 and 1")
        return compiled(target)

    return _observe(guarded)


def aot_eager():
    """The operator is not decomposed, and so keeps its check."""
    return _observe(torch.compile(_loss, backend="aot_eager"))


def eager_loss():
    """A compiled caller, with a graph break around the loss."""
    loss = torch.compiler.disable(_loss)
    return _observe(torch.compile(lambda target: loss(target) + 0 * target.sum()))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
