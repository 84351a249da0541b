"""pytorch-149405: a Python float argument is compiled into the graph for each value, also with dynamic=True.

A tensor is multiplied by a float that changes from call to call. Four values must not need four graphs. The script
counts the graphs that were compiled.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch._dynamo
from torch._dynamo.utils import counters

SIGNATURE = r"expected at most 2 graphs for 4 values, got \d+"


class WrongResult(Exception):
    """The computation ended without an error and with more work than it should."""


def _times(x, y):
    return x * y


def _observe(function, wrap=float):
    x, values = torch.ones(3), (1.5, 2.5, 3.5, 4.5)
    before = counters["stats"]["unique_graphs"]
    sums = [float(function(x, wrap(value)).sum()) for value in values]
    graphs = counters["stats"]["unique_graphs"] - before
    if sums != [3 * value for value in values]:
        raise RuntimeError("wrong sums: {}".format(sums))
    if graphs > 2:
        raise WrongResult("expected at most 2 graphs for {} values, got {}".format(len(values), graphs))
    return {"graphs": graphs, "sums": sums}


def control(backend="inductor"):
    return _observe(_times)


def baseline(backend="inductor"):
    return _observe(torch.compile(_times, backend=backend, dynamic=True))


def tensor_argument(backend="inductor"):
    """The factor is a tensor without dimensions."""
    return _observe(torch.compile(_times, backend=backend, dynamic=True), torch.tensor)


def dynamic_default(backend="inductor"):
    """Without dynamic=True, so that only what changes becomes dynamic."""
    return _observe(torch.compile(_times, backend=backend))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
