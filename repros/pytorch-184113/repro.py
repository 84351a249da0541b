"""pytorch-184113: the gradient of a compiled in-place autograd.Function is wrong where its result is not used.

The function multiplies its input in place by three, marks it dirty and returns it; the caller goes on with the input,
which is made inside the compiled function or comes in as its argument.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the gradient 6, got 2"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Triple(torch.autograd.Function):
    """x *= 3"""

    @staticmethod
    def forward(ctx, x):
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


def _inside(w):
    y = torch.ones(2, 2) @ w
    _Triple.apply(y)
    return y.sum()


def _argument(y):
    _Triple.apply(y)
    return y.sum()


def _inside_result_used(w):
    y = torch.ones(2, 2) @ w
    y = _Triple.apply(y)
    return y.sum()


def _argument_result_used(y):
    y = _Triple.apply(y)
    return y.sum()


def _observe(function, tensor):
    w = torch.eye(2, requires_grad=True)
    loss = function(torch.ones(2, 2) @ w if tensor == "argument" else w)
    loss.backward()
    if w.grad[0, 0] != 6:
        raise WrongResult("expected the gradient 6, got {:g}".format(w.grad[0, 0].item()))
    return {"loss": loss.item(), "gradient": w.grad.tolist()}


def control(tensor="inside", backend="eager"):
    return _observe(_argument if tensor == "argument" else _inside, tensor)


def baseline(tensor="inside", backend="eager"):
    return _observe(torch.compile(_argument if tensor == "argument" else _inside, backend=backend), tensor)


def result_used(tensor="inside", backend="eager"):
    """The tensor that apply returns is the one with the history."""
    function = _argument_result_used if tensor == "argument" else _inside_result_used
    return _observe(torch.compile(function, backend=backend), tensor)


def disabled(tensor="inside", backend="eager"):
    """Dynamo does not look into apply."""
    apply = torch.compiler.disable(_Triple.apply)

    def function(given):
        y = given if tensor == "argument" else torch.ones(2, 2) @ given
        apply(y)
        return y.sum()

    return _observe(torch.compile(function, backend=backend), tensor)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
