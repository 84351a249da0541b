"""pytorch-118396: ctx.set_materialize_grads in an autograd.Function breaks the graph.

A compiled function calls an autograd.Function that asks for None instead of zeros where an output has no gradient. The
script counts where Dynamo leaves the graph: it must not.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch._dynamo
from torch._dynamo.utils import counters

SIGNATURE = r""


class _Asking(torch.autograd.Function):
    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, grad):
        return (None if grad is None else grad * ctx.factor), None


class _Plain(torch.autograd.Function):
    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


def _asking(x):
    x = x + 1
    return _Asking.apply(x, 3) - 1


def _plain(x):
    x = x + 1
    return _Plain.apply(x, 3) - 1


def _observe(function, *arguments):
    """What the function returns, and at how many places Dynamo left the graph on the way."""
    before = sum(counters["graph_break"].values())
    result = function(*arguments)
    return {"graph_breaks": sum(counters["graph_break"].values()) - before, "result": result.detach().sum().item()}


def control():
    return _observe(_asking, torch.arange(8.0, requires_grad=True))


def baseline():
    return _observe(torch.compile(_asking, backend="eager"), torch.arange(8.0, requires_grad=True))


def take_zeros():
    """Without the call: backward is given zeros, and computes with them."""
    return _observe(torch.compile(_plain, backend="eager"), torch.arange(8.0, requires_grad=True))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
