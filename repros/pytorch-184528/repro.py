"""pytorch-184528: the gradient of a parameter that a scan's body closes over lacks what comes through the carry.

A scalar recurrence c = a c + x, with y = c c: the gradient of the sum of y by a, against the same recurrence as a loop.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch
from torch._higher_order_ops.scan import scan

SIGNATURE = r"expected the gradient 3\d\.\d+, got (28|30)\.\d+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _step(a):
    def step(carry, x):
        following = a * carry + x
        return following, following * following

    return step


def _loop(step, carry, xs):
    ys = []
    for x in xs:
        carry, y = step(carry, x)
        ys.append(y)
    return carry, torch.stack(ys)


def _suspect(a, carry, xs):
    return scan(_step(a), carry, xs, dim=0)


def _compute(function, final, carry_grad):
    a = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    carry = torch.tensor(0.25, dtype=torch.float64, requires_grad=carry_grad)
    last, ys = function(a, carry, torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))
    loss = ys.sum() + last if final else ys.sum()
    loss.backward()
    return loss.item(), a.grad.item()


def _observe(function, final, carry_grad=False):
    _, expected = _compute(lambda a, carry, xs: _loop(_step(a), carry, xs), final, False)
    loss, got = _compute(function, final, carry_grad)
    if abs(got - expected) > 1e-9:
        raise WrongResult("expected the gradient {:.4f}, got {:.4f} (tolerance 1e-9)".format(expected, got))
    return {"loss": loss, "gradient": got}


def control(final=0):
    return _observe(lambda a, carry, xs: _loop(_step(a), carry, xs), final)


def baseline(final=0):
    return _observe(torch.compile(_suspect, backend="eager"), final)


def carry_requires_grad(final=0):
    """The carry's part of the backward is kept where the first carry asks for a gradient."""
    return _observe(torch.compile(_suspect, backend="eager"), final, carry_grad=True)


def loop(final=0):
    """Python's loop, unrolled by Dynamo."""
    return _observe(torch.compile(lambda a, carry, xs: _loop(_step(a), carry, xs), backend="eager"), final)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
