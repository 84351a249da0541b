"""pytorch-194014: native_batch_norm kills the process in evaluation mode without running statistics.

Ones of shape (9, 2, 8, 8), training=False, running_mean and running_var None. With statistics the result is known; without
them the operator must refuse.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"line \d{1,5} in _without_statistics\b"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _x():
    return torch.full((9, 2, 8, 8), 3.0)


def _good():
    mean, variance = torch.tensor([1.0, 2.0]), torch.tensor([4.0, 1.0])
    got = torch.ops.aten.native_batch_norm(_x(), None, None, mean, variance, False, 0.1, 0.0)[0]
    if got[0, :, 0, 0].tolist() != [1.0, 1.0]:
        raise WrongResult("expected 1 and 1, got {}".format(got[0, :, 0, 0].tolist()))
    return {"first": got[0, :, 0, 0].tolist(), "sum": float(got.sum())}


def _without_statistics(x):
    return torch.ops.aten.native_batch_norm(x, None, None, None, None, False, 0.1, 1e-5)[0]


def _functional(x):
    return torch.nn.functional.batch_norm(x, None, None, None, None, False, 0.1, 1e-5)


def _batch_statistics(x):
    """What the input itself gives: no running statistics are needed for that."""
    return torch.ops.aten.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)[0]


def _refused(function):
    observed = _good()
    try:
        got = function(_x())
    except (RuntimeError, ValueError) as refusal:
        if "defined in evaluation mode" not in str(refusal):
            raise
        return dict(observed, refused=True)
    raise WrongResult("expected a refusal, got {}".format(got.flatten()[:2].tolist()))


def control():
    return _good()


def baseline():
    return _refused(_without_statistics)


def functional():
    return _refused(_functional)


def batch_statistics():
    observed = _good()
    got = _batch_statistics(_x())
    if float(got.abs().max()) > 1e-3:
        raise WrongResult("expected zeros to a thousandth, got {}".format(got.flatten()[:2].tolist()))
    return dict(observed, near_zero=True)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
