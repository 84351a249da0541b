"""pytorch-195422: an input that is changed through what F.dropout(training=False) returns stays as it was when compiled.

Without training, dropout returns its argument itself. Doubling that in place has to double the caller's tensor.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch
import torch.nn.functional as F

SIGNATURE = r"expected the input to be doubled in place, got 1\.0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x, training):
    y = F.dropout(x, 0.5, training)
    y += y
    return y


def _skipped(x, training):
    y = F.dropout(x, 0.5, training) if training else x
    y += y
    return y


def _module(x, training):
    y = torch.nn.Dropout(0.5).train(training)(x)
    y += y
    return y


def _observe(function):
    x = torch.ones(3)
    returned = function(x, False)
    if x[0].item() != 2.0:
        raise WrongResult("expected the input to be doubled in place, got {}".format(x[0].item()))
    return {"input": x.tolist(), "returned": returned.tolist()}


def _compiled(function):
    return torch.compile(function, fullgraph=True, backend="aot_eager")


def control():
    return _observe(_suspect)


def baseline():
    return _observe(_compiled(_suspect))


def skipped():
    """Dropout is called in training only."""
    return _observe(_compiled(_skipped))


def module():
    """No cure: nn.Dropout calls F.dropout."""
    return _observe(_compiled(_module))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
