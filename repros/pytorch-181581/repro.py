"""pytorch-181581: a gradient made with create_graph=True in a compiled function does not require gradients.

The gradient of a product of matrices, taken with create_graph=True where both require gradients, must itself require them.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected a gradient that requires gradients, got requires_grad False"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _mm(x, w):
    return torch.mm(x, w)


def _gradient(product, x, w):
    return torch.autograd.grad(product(x, w).sum(), x, create_graph=True)[0]


def _suspect(x, w):
    return _gradient(_mm, x, w)


def _by_func(x, w):
    return torch.func.grad(lambda y: _mm(y, w).sum())(x)


def _observe(function):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    w = torch.tensor([[0.5, 1.0], [-1.0, 2.0]], requires_grad=True)
    gradient = function(x, w)
    if not gradient.requires_grad:
        raise WrongResult("expected a gradient that requires gradients, got requires_grad {}, values {}".format(
            gradient.requires_grad, gradient.tolist()))
    return {"gradient": gradient.tolist(), "requires_grad": gradient.requires_grad}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, backend="aot_eager"))


def by_func():
    """torch.func.grad is traced into the graph; its result is an output like any other."""
    return _observe(torch.compile(_by_func, backend="aot_eager"))


def disabled():
    """Eager makes what is differentiated twice; what stands before it is compiled."""
    gradient = torch.compiler.disable(_suspect)
    return _observe(torch.compile(lambda x, w: gradient(x * 1.0, w), backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
