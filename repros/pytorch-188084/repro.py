"""pytorch-188084: the gradient of index_select under vmap is too large by the size of the batch with Inductor.

The report's function: two of four stacked columns are selected and weighted with 1 and -1. Each row of the gradient must
be 1, 0, -1, 0.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected rows of 1, 0, -1 and 0, got \[\[4\.0, 0\.0, -4\.0, 0\.0\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _selected(stacked):
    index, weight = torch.tensor([0, 2]), torch.tensor([1.0, -1.0], dtype=torch.float64)
    return (torch.index_select(stacked, -1, index) * weight).sum(-1)


def _stack(x):
    return torch.stack([x[..., k] for k in range(4)], dim=-1)


def _row(x):
    return _selected(_stack(x)).reshape(())


def _row_by_indices(x):
    stacked = _stack(x)
    return stacked[..., 0] - stacked[..., 2]


def _suspect(x):
    return torch.func.vmap(torch.func.grad_and_value(_row))(x)


def _by_indices(x):
    return torch.func.vmap(torch.func.grad_and_value(_row_by_indices))(x)


def _observe(function):
    x = torch.arange(16.0, dtype=torch.float64).reshape(4, 4) ** 2
    gradient, value = function(x)
    if gradient.tolist() != [[1.0, 0.0, -1.0, 0.0]] * 4:
        raise WrongResult("expected rows of 1, 0, -1 and 0, got {}".format(gradient.tolist()))
    return {"gradient": gradient.tolist(), "sum": value.sum().item()}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, fullgraph=True, dynamic=True))


def by_indices():
    """Columns are taken one by one; the backward has no index_put."""
    return _observe(torch.compile(_by_indices, fullgraph=True, dynamic=True))


def aot_eager():
    """Inductor's pass that makes operations in place again does not run."""
    return _observe(torch.compile(_suspect, backend="aot_eager", fullgraph=True, dynamic=True))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
