"""pytorch-198270: a write by index, then an in-place update that reads other rows: wrong numbers when compiled.

`x[rows] = x * 2`, then `x.add_(x.flip(0))`: Inductor copies into x and reads x at mirrored rows in one loop, so that
half of the rows are read after they were written. Small whole numbers are exact in float32: the comparison needs no
tolerance.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected 0 elements to differ, got \d+ of \d+"


class WrongResult(Exception):
    """The computation ended without an error and with wrong numbers."""


def _put_then_add(x):
    x.index_put_((torch.arange(x.size(0)),), x * 2.0)
    x.add_(x.flip(0))
    return x


def _only_add(x):
    x.add_(x.flip(0))
    return x


CASES = {"both": _put_then_add, "only_add": _only_add}


def _observe(function, case):
    x = torch.arange(32, dtype=torch.float32).reshape(4, 8).clone()
    expected = CASES[case](x.clone())
    result = function(x)
    apart = int((result != expected).sum())
    if apart:
        raise WrongResult("expected 0 elements to differ, got {} of {} (exact)".format(apart, result.numel()))
    return {"sum": float(result.sum())}


def _compile(function, **options):
    return torch.compile(function, fullgraph=True, **options)


def control(case="both"):
    return _observe(CASES[case], case)


def baseline(case="both"):
    return _observe(_compile(CASES[case]), case)


def out_of_place(case="both"):
    """The sum is a tensor of its own, and is copied into x by the caller."""

    def function(x):
        x.index_put_((torch.arange(x.size(0)),), x * 2.0)
        return x + x.flip(0)

    compiled = _compile(function)
    return _observe(lambda x: x.copy_(compiled(x)), case)


def two_graphs(case="both"):
    """A graph break between the two statements."""

    def function(x):
        x.index_put_((torch.arange(x.size(0)),), x * 2.0)
        torch._dynamo.graph_break()
        x.add_(x.flip(0))
        return x

    return _observe(torch.compile(function), case)


def aot_eager(case="both"):
    return _observe(_compile(CASES[case], backend="aot_eager"), case)


def clone_flipped(case="both"):
    """The copy is fused away."""

    def function(x):
        x.index_put_((torch.arange(x.size(0)),), x * 2.0)
        x.add_(x.flip(0).clone())
        return x

    return _observe(_compile(function), case)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
