"""pytorch-106893: an autograd.Function whose backward is @once_differentiable cannot be compiled as one graph.

Its backward halves the gradient. Dynamo traces the backward as well, and met a wrapper that it refused to look into.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
from torch.autograd.function import once_differentiable

SIGNATURE = r"Unsupported: [^U]*(?:U(?!nsupported: )[^U]*){0,200}(once_differentiable|autograd/function\.py|in skipfiles)"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong gradient."""


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        return gradient * 0.5


class _Plain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 0.5


def _once(x):
    return _Once.apply(x) + 1


def _observe(function):
    x = torch.ones(3, requires_grad=True)
    function(x).sum().backward()
    if x.grad.tolist() != [0.5, 0.5, 0.5]:
        raise WrongResult("expected gradient 0.5, got {}".format(x.grad.tolist()))
    return {"gradient": x.grad.tolist()}


def control():
    return _observe(_once)


def baseline():
    return _observe(torch.compile(_once, backend="eager", fullgraph=True))


def no_decorator():
    return _observe(torch.compile(lambda x: _Plain.apply(x) + 1, backend="eager", fullgraph=True))


def graph_break():
    """The Function runs in eager mode, between two graphs."""
    return _observe(torch.compile(_once, backend="eager"))


def disallowed():
    """The call is kept out of the graph by name."""
    call = torch._dynamo.disable(_Once.apply)
    return _observe(torch.compile(lambda x: call(x * 1) + 1, backend="eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
