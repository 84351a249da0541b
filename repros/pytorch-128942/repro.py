"""pytorch-128942: a class statement inside a compiled function breaks the graph.

A function with a class of its own is called five times with tensors of one shape. The script counts the graphs that are
compiled for it: one before the class and one after it are enough.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch._dynamo
from torch._dynamo.utils import counters

SIGNATURE = r""

CALLS = 5


def _with_class(x):
    x = x + 1

    class _Shift:
        by = 2

    x = x * 3
    return x + _Shift.by


class _Shift:
    by = 2


def _without_class(x):
    x = x + 1
    x = x * 3
    return x + _Shift.by


def _observe(function, compiled=True):
    graphs = []

    def counting(graph, inputs):
        graphs.append(len(inputs))
        return graph.forward

    called = torch.compile(function, backend=counting) if compiled else function
    results = [called(torch.arange(8.0)).sum().item() for _ in range(CALLS)]
    return {"graphs": len(graphs), "results": results}


def control():
    return _observe(_with_class, compiled=False)


def baseline():
    return _observe(_with_class)


def class_outside():
    """The class is defined next to the function."""
    return _observe(_without_class)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
