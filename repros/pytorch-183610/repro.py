"""pytorch-183610: integer modulo and floor division by zero kill the process when compiled for the CPU.

Four integers are taken modulo (or divided by) four divisors, two of which are zero. Eager raises ZeroDivisionError; the compiled
function must raise it too.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"Fatal Python error: Floating point exception|Floating point exception"


def _modulo(x, divisor):
    return x % divisor


def _floor_divide(x, divisor):
    return x // divisor


_OPERATIONS = {"modulo": _modulo, "floor_divide": _floor_divide}


def _observe(function):
    good = function(torch.tensor([15, -8, 22, 4]), torch.tensor([4, 3, 5, 1])).tolist()
    try:
        got = function(torch.tensor([15, -8, 22, 4]), torch.tensor([4, 0, 0, 1])).tolist()
    except RuntimeError as refusal:
        if "ZeroDivisionError" not in str(refusal):
            raise
        return {"refused": True, "good": good}
    raise AssertionError("no refusal, but {}".format(got))


def control(operation="modulo"):
    return _observe(_OPERATIONS[operation])


def baseline(operation="modulo"):
    return _observe(torch.compile(_OPERATIONS[operation]))


def replace_zero(operation="modulo"):
    """No divisor of the kernel is zero; what was one is told beside the result."""

    def _guarded(x, divisor):
        bad = divisor == 0
        return _OPERATIONS[operation](x, torch.where(bad, 1, divisor)), bad

    step = torch.compile(_guarded)

    def _step(x, divisor):
        result, bad = step(x, divisor)
        if bad.any():
            raise RuntimeError("ZeroDivisionError")
        return result

    return _observe(_step)


def aot_eager(operation="modulo"):
    return _observe(torch.compile(_OPERATIONS[operation], backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
