"""pytorch-183988: x[torch.randperm(n)] does not compile.

The rows of x in a random order: sorted, they must be the rows of x.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"Perhaps one of the inputs is unused\? argnames?=[^\n]{0,20}slice_shape"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x):
    return x[torch.randperm(x.shape[0])]


def _by_sorting(x):
    return x[torch.argsort(torch.rand(x.shape[0]))]


def _selected(x):
    return torch.index_select(x, 0, torch.randperm(x.shape[0]))


def _observe(function):
    x = torch.arange(32.0).reshape(8, 4)
    rows = sorted(function(x).tolist())
    if rows != x.tolist():
        raise WrongResult("expected the eight rows in some order, got {}".format(rows))
    return {"rows": rows}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect))


def drawn_before():
    """The permutation is an argument of the compiled function."""
    take = torch.compile(lambda x, order: x[order])
    return _observe(lambda x: take(x, torch.randperm(x.shape[0])))


def by_sorting():
    """The order that sorts random numbers is a random permutation."""
    return _observe(torch.compile(_by_sorting))


def no_pattern_matcher():
    return _observe(torch.compile(_suspect, options={"pattern_matcher": False}))


def aot_eager():
    return _observe(torch.compile(_suspect, backend="aot_eager"))


def selected():
    """index_select becomes the same indexing."""
    return _observe(torch.compile(_selected))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
