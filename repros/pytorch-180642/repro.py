"""pytorch-180642: an in-place operation in the forward of a compiled autograd.Function costs the gradient.

The function computes x w and adds one to it in place. The gradient of x must be w, and not zero.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the gradient 5, got 0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _InPlace(torch.autograd.Function):
    """x w + 1"""

    @staticmethod
    def forward(ctx, x, w):
        y = x * w
        y += 1
        ctx.save_for_backward(x, w)
        return y

    @staticmethod
    def backward(ctx, gradient):
        x, w = ctx.saved_tensors
        return gradient * w, gradient * x


class _OutOfPlace(torch.autograd.Function):
    """x w + 1"""

    @staticmethod
    def forward(ctx, x, w):
        y = x * w
        y = y + 1
        ctx.save_for_backward(x, w)
        return y

    @staticmethod
    def backward(ctx, gradient):
        x, w = ctx.saved_tensors
        return gradient * w, gradient * x


def _suspect(x, w):
    return _InPlace.apply(x, w).sum()


def _out_of_place(x, w):
    return _OutOfPlace.apply(x, w).sum()


def _observe(function):
    x, w = torch.ones(2, requires_grad=True), torch.full((2,), 5.0, requires_grad=True)
    loss = function(x, w)
    loss.backward()
    if x.grad.tolist() != [5.0, 5.0] or w.grad.tolist() != [1.0, 1.0]:
        raise WrongResult("expected the gradient 5, got {:g}; that of w, 1 was expected, is {:g}".format(
            x.grad[0].item(), w.grad[0].item()))
    return {"loss": loss.item(), "gradient": x.grad.tolist(), "gradient of w": w.grad.tolist()}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, backend="eager"))


def out_of_place():
    """Nothing is changed in place, and no name is left for an older value."""
    return _observe(torch.compile(_out_of_place, backend="eager"))


def disabled():
    """Dynamo does not look into apply."""
    apply = torch.compiler.disable(_InPlace.apply)
    return _observe(torch.compile(lambda x, w: apply(x, w).sum(), backend="eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
