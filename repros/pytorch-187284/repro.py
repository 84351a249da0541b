"""pytorch-187284: a function compiled with Inductor drops the tangent of a dual tensor.

The report's sum of squares under torch.autograd.forward_ad; its tangent in the direction of ones must be 1.2.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch
import torch.autograd.forward_ad as forward_ad

SIGNATURE = r"expected the tangent 1\.2, got None"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x):
    return (x ** 2).sum()


def _inputs():
    return torch.tensor([0.1, 0.2, 0.3]), torch.ones(3)


def _checked(value, tangent):
    if tangent is None or abs(tangent.item() - 1.2) > 1e-4:
        raise WrongResult("expected the tangent 1.2, got {}, tolerance 1e-4".format(
            None if tangent is None else tangent.item()))
    return {"value": round(value.item(), 5), "tangent": round(tangent.item(), 5)}


def _tangent(function, x, direction):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(function(forward_ad.make_dual(x, direction))).tangent


def _observe(function, first):
    x, direction = _inputs()
    if first == "plain":
        value = function(x)
        return _checked(value, _tangent(function, x, direction))
    tangent = _tangent(function, x, direction)
    return _checked(function(x), tangent)


def control(first="dual"):
    return _observe(_suspect, first)


def baseline(first="dual"):
    return _observe(torch.compile(_suspect), first)


def by_func(first="dual"):
    """torch.func.jvp is traced into the graph."""
    compiled = torch.compile(lambda x, v: torch.func.jvp(_suspect, (x,), (v,)))
    x, direction = _inputs()
    values = [torch.compile(_suspect)(x)] if first == "plain" else []
    value, tangent = compiled(x, direction)
    return _checked(*values, tangent) if values else _checked(value, tangent)


def aot_eager(first="dual"):
    """Graphs of this backend run through the dispatcher, which knows of tangents."""
    return _observe(torch.compile(_suspect, backend="aot_eager"), first)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
