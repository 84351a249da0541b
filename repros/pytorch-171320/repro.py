"""pytorch-171320: the product of two Python floats inside a compiled function makes every new value a new graph.

A tensor is multiplied in place by the product of two floats, one of which grows from call to call. Six values must not
need six graphs. The script counts the graphs that were compiled.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch._dynamo
from torch._dynamo.utils import counters

SIGNATURE = r"expected at most 3 graphs for 6 values, got \d+"


class WrongResult(Exception):
    """The computation ended without an error and with more work than it should."""


def _scalars_first(p, a, b):
    p.mul_(p * (a * b))


def _tensor_first(p, a, b):
    p.mul_(p * a * b)


def _product(p, product):
    p.mul_(p * product)


def _observe(step):
    before = counters["stats"]["unique_graphs"]
    results = []
    for number in range(1, 7):
        p = torch.full((3,), 2.0)
        step(p, 0.25 * number, 1.5)
        results.append(float(p[0]))
    graphs = counters["stats"]["unique_graphs"] - before
    expected = [1.5 * number for number in range(1, 7)]
    if results != expected:
        raise RuntimeError("expected {}, got {}".format(expected, results))
    if graphs > 3:
        raise WrongResult("expected at most 3 graphs for 6 values, got {}".format(graphs))
    return {"graphs": graphs, "results": results}


def control(backend="inductor"):
    return _observe(_scalars_first)


def baseline(backend="inductor"):
    return _observe(torch.compile(_scalars_first, backend=backend, fullgraph=True))


def tensor_first(backend="inductor"):
    """Each product is one of a tensor and a float."""
    return _observe(torch.compile(_tensor_first, backend=backend, fullgraph=True))


def product_outside(backend="inductor"):
    """The floats are multiplied before the compiled function."""
    compiled = torch.compile(_product, backend=backend, fullgraph=True)
    return _observe(lambda p, a, b: compiled(p, a * b))


def tensor_scalar(backend="inductor"):
    """The float that changes is a tensor without dimensions."""
    compiled = torch.compile(_scalars_first, backend=backend, fullgraph=True)
    return _observe(lambda p, a, b: compiled(p, torch.tensor(a), b))


def dynamic_true(backend="inductor"):
    return _observe(torch.compile(_scalars_first, backend=backend, fullgraph=True, dynamic=True))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
