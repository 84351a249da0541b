"""pytorch-118397: an autograd.Function with setup_context breaks the graph where no gradient is needed.

A compiled function calls an autograd.Function whose `forward` has no ctx and whose `setup_context` keeps what the backward
needs, with an input that needs no gradient, as in inference. The script counts where Dynamo leaves the graph: it must not.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch._dynamo
from torch._dynamo.utils import counters

SIGNATURE = r""


class _Apart(torch.autograd.Function):
    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


class _Together(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


def _apart(x):
    x = x + 1
    return _Apart.apply(x, 3) - 1


def _together(x):
    x = x + 1
    return _Together.apply(x, 3) - 1


def _observe(function, *arguments):
    """What the function returns, and at how many places Dynamo left the graph on the way."""
    before = sum(counters["graph_break"].values())
    result = function(*arguments)
    return {"graph_breaks": sum(counters["graph_break"].values()) - before, "result": result.detach().sum().item()}


def control():
    return _observe(_apart, torch.arange(8.0))


def baseline():
    return _observe(torch.compile(_apart, backend="eager"), torch.arange(8.0))


def one_forward():
    """The older form: forward takes ctx and keeps what is needed."""
    return _observe(torch.compile(_together, backend="eager"), torch.arange(8.0))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
