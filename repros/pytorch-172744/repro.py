"""pytorch-172744: linalg.ldl_solve corrupts memory where the pivots do not come from ldl_factor.

The identity with pivots [0, 0], as in the report, and with a pivot far out of range. Pivots of ldl_factor must solve the
system; these must be refused.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"line \d{1,5} in _foreign_pivots\b"

_PIVOTS = {"far": [2**30, 2], "zero": [0, 0]}


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _by_ldl(a, b):
    factors, pivots = torch.linalg.ldl_factor(a)
    return torch.ops.aten.linalg_ldl_solve(factors, pivots, b)


def _by_lu(a, b):
    factors, pivots = torch.linalg.lu_factor(a)
    return torch.ops.aten.linalg_lu_solve(factors, pivots, b)


def _good(solve=_by_ldl):
    got = solve(torch.tensor([[4.0, 2.0], [2.0, 3.0]]), torch.tensor([[8.0], [8.0]]))
    if not torch.allclose(got, torch.tensor([[1.0], [2.0]]), atol=1e-5):
        raise WrongResult("expected 1 and 2, got {}".format(got.flatten().tolist()))
    return {"solution": [round(one, 4) for one in got.flatten().tolist()]}


def _foreign_pivots(pivots):
    got = None
    for _ in range(50):  # what is overwritten is noticed when memory is freed
        got = torch.ops.aten.linalg_ldl_solve(torch.eye(2), pivots, torch.ones(2, 1)).flatten().tolist()
    return got


def _checked(pivots):
    if bool(((pivots.abs() < 1) | (pivots.abs() > 2)).any()):
        raise ValueError("Pivots given to ldl_solve do not come from ldl_factor")
    return _foreign_pivots(pivots)


def _foreign_lu_pivots(pivots):
    return torch.linalg.lu_solve(torch.eye(2), pivots, torch.ones(2, 1)).tolist()


def _observe(function, pivots, solve=_by_ldl):
    observed = _good(solve)
    try:
        got = function(torch.tensor(_PIVOTS[pivots], dtype=torch.int32))
    except (RuntimeError, ValueError) as refusal:
        if "ivots" not in str(refusal):
            raise
        return dict(observed, refused=True)
    raise WrongResult("expected a refusal, got {}".format(got))


def control(pivots="far"):
    return _good()


def baseline(pivots="far"):
    return _observe(_foreign_pivots, pivots)


def check_first(pivots="far"):
    return _observe(_checked, pivots)


def lu_solve(pivots="far"):
    return _observe(_foreign_lu_pivots, pivots, _by_lu)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
