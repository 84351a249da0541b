"""pytorch-181146: an autograd.Function that is given one tensor twice loses a part of its gradient.

One leaf is passed to both inputs of the function, whose backward returns another gradient for each. Both must be added.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the gradient (5, got 3|2, got None)"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Both(torch.autograd.Function):
    """2 a + 3 b, with a gradient for each."""

    @staticmethod
    def forward(ctx, a, b):
        return a * 2 + b * 3

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2, gradient * 3


class _First(torch.autograd.Function):
    """2 a + 3 b, with no gradient for b."""

    @staticmethod
    def forward(ctx, a, b):
        return a * 2 + b * 3

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2, None


_FUNCTIONS = {"both": (_Both, 5), "first": (_First, 2)}


def _suspect(x, function):
    return function.apply(x, x).sum() * 1.0


def _copied(x, function):
    return function.apply(x, x.view_as(x)).sum() * 1.0


def _observe(compute, slots):
    function, expected = _FUNCTIONS[slots]
    x = torch.ones(2, requires_grad=True)
    loss = compute(x, function)
    loss.backward()
    got = None if x.grad is None else int(x.grad[0])
    if got != expected:
        raise WrongResult("expected the gradient {}, got {}".format(expected, got))
    return {"loss": loss.item(), "gradient": x.grad.tolist()}


def control(slots="both"):
    return _observe(_suspect, slots)


def baseline(slots="both"):
    return _observe(torch.compile(_suspect, backend="eager"), slots)


def view(slots="both"):
    """A view is another tensor, and autograd adds what comes back through it."""
    return _observe(torch.compile(_copied, backend="eager"), slots)


def disabled(slots="both"):
    """Dynamo does not look into apply."""
    apply = torch.compiler.disable(_FUNCTIONS[slots][0].apply)
    return _observe(torch.compile(lambda x, function: apply(x, x).sum() * 1.0, backend="eager"), slots)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
