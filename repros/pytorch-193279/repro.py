"""pytorch-193279: under torch.compile, torch.func.grad does not call the backward that an autograd.Function defines.

The function is a sine whose backward says 0, so that the gradient shows which rule was used: 0 is the function's own,
cos(x) that of the inlined sine.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import math

import torch

SIGNATURE = r"expected gradients 0 by the function's own backward, got \[[^]x\n]*\]"

_X = (0.1, 0.7, 2.0)


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Sine(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.sin(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return torch.zeros_like(grad)


def _loss(x):
    return _Sine.apply(x).sum()


def _gradient(x):
    return torch.func.grad(_loss)(x)


def _scaled(x):
    """The gradient inside of something that is compiled."""
    return _gradient(x) * 1.0


def _observe(function):
    got = function(torch.tensor(_X)).tolist()
    if any(value != 0 for value in got):
        raise WrongResult("expected gradients 0 by the function's own backward, got {} (tolerance 0); "
                          "cos(x) is {}".format(got, [math.cos(x) for x in _X]))
    return {"gradients": str(got)}


def control():
    return _observe(_scaled)


def baseline(backend="aot_eager"):
    return _observe(torch.compile(_scaled, backend=backend))


def autograd_grad(backend="aot_eager"):
    """The loss alone is compiled, and torch.autograd.grad called outside."""
    loss = torch.compile(_loss, backend=backend)

    def gradient(x):
        x = x.requires_grad_()
        return torch.autograd.grad(loss(x), x)[0]

    return _observe(gradient)


def disabled(backend="aot_eager"):
    """Dynamo does not look into the call of torch.func.grad."""
    gradient = torch.compiler.disable(_gradient)
    return _observe(torch.compile(lambda x: gradient(x) * 1.0, backend=backend))


def allowed_in_graph(backend="aot_eager"):
    """The whole gradient is one call in Dynamo's graph, and AOTAutograd traces it as eager runs it."""
    torch.compiler.allow_in_graph(_gradient)
    return _observe(torch.compile(_scaled, backend=backend, fullgraph=True))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
