"""pytorch-186449: reading a contextvars.ContextVar inside a compiled function breaks the graph.

A compiled function multiplies by the value of a context variable. The script counts where Dynamo leaves the graph: it
must not.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import contextvars
import threading

import torch
import torch._dynamo
from torch._dynamo.utils import counters

SIGNATURE = r""

_SCALE = contextvars.ContextVar("scale", default=3)
_LOCAL = threading.local()
_LOCAL.scale = 3


def _scaled(x):
    x = x + 1
    return x * _SCALE.get() - 1


def _scaled_by(x, scale):
    x = x + 1
    return x * scale - 1


def _scaled_local(x):
    x = x + 1
    return x * _LOCAL.scale - 1


def _observe(function, *arguments):
    """What the function returns, and at how many places Dynamo left the graph on the way."""
    before = sum(counters["graph_break"].values())
    result = function(*arguments)
    return {"graph_breaks": sum(counters["graph_break"].values()) - before, "result": result.detach().sum().item()}


def control():
    return _observe(_scaled, torch.arange(8.0))


def baseline():
    return _observe(torch.compile(_scaled, backend="eager"), torch.arange(8.0))


def as_argument():
    """Read before the call."""
    return _observe(torch.compile(_scaled_by, backend="eager"), torch.arange(8.0), _SCALE.get())


def thread_local():
    return _observe(torch.compile(_scaled_local, backend="eager"), torch.arange(8.0))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
