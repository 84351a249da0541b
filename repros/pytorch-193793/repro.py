"""pytorch-193793: arange with a fractional step and the dtype int64 kills the process.

From 1 to 2 in steps of 0.1 as int64, as in the report: ten ones, or a refusal, and no division by zero.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"line \d{1,5} in _fractional_step\b"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _good():
    got = torch.ops.aten.arange(1, 8, 3, dtype=torch.int64).tolist()
    if got != [1, 4, 7]:
        raise WrongResult("expected 1, 4 and 7, got {}".format(got))
    return {"whole_steps": got}


def _fractional_step():
    return torch.ops.aten.arange(1, 2, 0.1, dtype=torch.int64)


def _converted():
    return torch.ops.aten.arange(1, 2, 0.1, dtype=torch.float64).to(torch.int64)


def _divided():
    return torch.ops.aten.arange(10, 20, 1, dtype=torch.int64) // 10


def _observe(function, may_refuse=False):
    observed = _good()
    try:
        got = function().tolist()
    except (RuntimeError, ValueError) as refusal:
        if not may_refuse or "step must be nonzero" not in str(refusal):
            raise
        return dict(observed, outcome="refused")
    if got != [1] * 10:
        raise WrongResult("expected ten ones, got {}".format(got))
    return dict(observed, outcome=str(got))


def control():
    return _good()


def baseline():
    return _observe(_fractional_step, may_refuse=True)


def convert_after():
    return _observe(_converted)


def whole_numbers():
    return _observe(_divided)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
