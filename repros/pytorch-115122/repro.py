"""pytorch-115122: copy.deepcopy of settings inside a compiled function breaks the graph.

A compiled function copies a dict of settings, changes the copy and computes with it. The script counts where Dynamo leaves
the graph: it must not.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import copy

import torch
import torch._dynamo
from torch._dynamo.utils import counters

SIGNATURE = r""

_SETTINGS = {"scale": 3, "shifts": [1, 2]}


def _with_copy(x):
    x = x + 1
    settings = copy.deepcopy(_SETTINGS)
    settings["shifts"].append(4)
    return x * settings["scale"] + sum(settings["shifts"])


def _with_given(x, settings):
    x = x + 1
    return x * settings["scale"] + sum(settings["shifts"])


def _with_literal(x):
    x = x + 1
    settings = {**_SETTINGS, "shifts": [*_SETTINGS["shifts"], 4]}
    return x * settings["scale"] + sum(settings["shifts"])


def _observe(function, *arguments):
    """What the function returns, and at how many places Dynamo left the graph on the way."""
    before = sum(counters["graph_break"].values())
    result = function(*arguments)
    return {"graph_breaks": sum(counters["graph_break"].values()) - before, "result": result.detach().sum().item()}


def control():
    return _observe(_with_copy, torch.arange(8.0))


def baseline():
    return _observe(torch.compile(_with_copy, backend="eager"), torch.arange(8.0))


def build_anew():
    """A new dict of the old one's parts, instead of a deep copy."""
    return _observe(torch.compile(_with_literal, backend="eager"), torch.arange(8.0))


def copy_before():
    settings = copy.deepcopy(_SETTINGS)
    settings["shifts"].append(4)
    return _observe(torch.compile(_with_given, backend="eager"), torch.arange(8.0), settings)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
