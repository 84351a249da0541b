"""pytorch-174078: compiled dropout of a transposed copy takes its random numbers in another order than eager.

Dropout of a transposed copy of nine numbers, with `fallback_random` and one seed: compiled and not, the same must be kept.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected what eager keeps, \[\[[\d., ]+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x):
    return torch.nn.functional.dropout(x.t().contiguous(), p=0.5, training=True) + 1


def _tail(y):
    return torch.nn.functional.dropout(y, p=0.5, training=True) + 1


def _observe(function):
    x = torch.arange(1.0, 10.0, dtype=torch.float64).reshape(3, 3)
    torch.manual_seed(0)
    expected = _suspect(x).tolist()
    torch.manual_seed(0)
    got = function(x).tolist()
    if got != expected:
        raise WrongResult("expected what eager keeps, {}, got {}".format(expected, got))
    return {"kept": got}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, options={"fallback_random": True}))


def copy_outside():
    """What is compiled gets a tensor that lies as eager's does."""
    tail = torch.compile(_tail, options={"fallback_random": True})
    return _observe(lambda x: tail(x.t().contiguous()))


def aot_eager():
    return _observe(torch.compile(_suspect, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
