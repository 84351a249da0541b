"""pytorch-157452: making an nn.Parameter inside a compiled function breaks the graph.

A compiled function makes a parameter and multiplies by it. The script counts where Dynamo leaves the graph.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch._dynamo
from torch._dynamo.utils import counters

SIGNATURE = r""


class NotApplicable(Exception):
    """The arm cannot exist on this build."""


def _makes(x):
    x = x + 1
    return x * torch.nn.Parameter(torch.full((8,), 3.0)) - 1


def _given(x, parameter):
    x = x + 1
    return x * parameter - 1


def _plain(x):
    x = x + 1
    return x * torch.full((8,), 3.0) - 1


def _observe(function, *arguments):
    """What the function returns, and at how many places Dynamo left the graph on the way."""
    before = sum(counters["graph_break"].values())
    result = function(*arguments)
    return {"graph_breaks": sum(counters["graph_break"].values()) - before, "result": result.detach().sum().item()}


def control():
    return _observe(_makes, torch.arange(8.0))


def baseline():
    return _observe(torch.compile(_makes, backend="eager"), torch.arange(8.0))


def make_before():
    """The parameter is made before the call."""
    return _observe(torch.compile(_given, backend="eager"), torch.arange(8.0), torch.nn.Parameter(torch.full((8,), 3.0)))


def plain_tensor():
    """A tensor will do where nothing is to be trained."""
    return _observe(torch.compile(_plain, backend="eager"), torch.arange(8.0))


def as_before():
    """The switch back to tracing the constructor."""
    if not hasattr(torch._dynamo.config, "graph_break_on_nn_param_ctor"):
        raise NotApplicable("no such setting on this release")
    with torch._dynamo.config.patch(graph_break_on_nn_param_ctor=False):
        return _observe(torch.compile(_makes, backend="eager"), torch.arange(8.0))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
