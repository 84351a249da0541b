"""pytorch-190758: with an activation memory budget below 1, a compiled dropout is differentiated with another mask.

For y = dropout(x), the gradient of y.sum() times x is y itself, element by element: both hold the same mask.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch
import torch.nn.functional as F

SIGNATURE = r"expected the mask of the forward, got another in \d+ of 64 elements"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class NotApplicable(Exception):
    """This cannot exist here."""


def _suspect(x):
    return F.dropout(x, 0.5, True) + 0.0


def _checkpointed(x):
    return torch.utils.checkpoint.checkpoint(_suspect, x, use_reentrant=False)


def _observe(function, budget):
    import torch._functorch.config as config

    if not hasattr(config, "activation_memory_budget"):
        raise NotApplicable("no activation_memory_budget in this torch")
    torch.manual_seed(0)
    x = torch.ones(64, requires_grad=True)
    with config.patch(activation_memory_budget=budget):
        y = function(x)
        y.sum().backward()
    wrong = (x.grad * x != y).nonzero().flatten().tolist()
    if wrong:
        raise WrongResult("expected the mask of the forward, got another in {} of 64 elements".format(len(wrong)))
    return {"elements with another mask": str(wrong), "scale of a kept one": float(x.grad.max())}


def control(backend="aot_eager"):
    return _observe(_suspect, 0.0)


def baseline(backend="aot_eager"):
    return _observe(torch.compile(_suspect, backend=backend), 0.0)


def full_budget(backend="aot_eager"):
    """The default: what costs memory may be saved."""
    return _observe(torch.compile(_suspect, backend=backend), 1.0)


def checkpointed(backend="aot_eager"):
    """An explicit checkpoint saves the state of the random numbers and replays it."""
    import torch.utils.checkpoint  # noqa: F401

    return _observe(torch.compile(_checkpointed, backend=backend), 0.0)


def disabled(backend="aot_eager"):
    """Eager dropout keeps its mask."""
    dropout = torch.compiler.disable(F.dropout)
    return _observe(torch.compile(lambda x: dropout(x, 0.5, True) + 0.0, backend=backend), 0.0)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
