"""pytorch-133483: a context manager written with contextlib.contextmanager breaks the graph.

A compiled function multiplies within a `with` block of such a context manager. The script counts where Dynamo leaves the
graph: it must not.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import contextlib

import torch
import torch._dynamo
from torch._dynamo.utils import counters

SIGNATURE = r""


@contextlib.contextmanager
def _doubled():
    _STATE["factor"] *= 2
    try:
        yield
    finally:
        _STATE["factor"] //= 2


class _Doubled:
    def __enter__(self):
        _STATE["factor"] *= 2

    def __exit__(self, *failure):
        _STATE["factor"] //= 2


_STATE = {"factor": 1}


def _inside(x):
    x = x + 1
    with _doubled():
        x = x * _STATE["factor"]
    return x - 1


def _inside_class(x):
    x = x + 1
    with _Doubled():
        x = x * _STATE["factor"]
    return x - 1


def _observe(function, *arguments):
    """What the function returns, and at how many places Dynamo left the graph on the way."""
    before = sum(counters["graph_break"].values())
    result = function(*arguments)
    return {"graph_breaks": sum(counters["graph_break"].values()) - before, "result": result.detach().sum().item()}


def control():
    return _observe(_inside, torch.arange(8.0))


def baseline():
    return _observe(torch.compile(_inside, backend="eager"), torch.arange(8.0))


def as_a_class():
    """The same context manager as a class with __enter__ and __exit__."""
    return _observe(torch.compile(_inside_class, backend="eager"), torch.arange(8.0))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
