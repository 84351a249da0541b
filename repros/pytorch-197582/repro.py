"""pytorch-197582: v[i] = v[i] + 1 with a repeated index that is computed from arange adds it more than once.

The index `arange(n) % 2` names elements 0 and 1 in turn. Eager mode reads all of v[i], adds 1 and writes: both elements are
raised by 1, however often they are named, and the others stay as they are. All values are compared exactly.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected the first two raised by 1\.0, got them raised by "


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _index(n):
    return torch.arange(n) % 2


def _raised(x):
    v = x.view(-1)
    i = _index(v.numel())
    v[i] = v[i] + 1.0
    return x


def _raised_by(x, i):
    v = x.view(-1)
    v[i] = v[i] + 1.0
    return x


def _raised_clones(x):
    v = x.view(-1)
    i = _index(v.numel())
    v[i] = v[i].clone() + 1.0
    return x


def _raised_copy(x):
    v = x.view(-1)
    i = _index(v.numel())
    return v.index_put((i,), v[i] + 1.0).view(x.shape)


def _observe(function, rows):
    x = torch.arange(1.0, 2.0 * rows + 1.0).view(rows, 2)
    before = x.clone().view(-1)
    result = function(x).reshape(-1)
    by = (result - before).tolist()
    if by[2:] != [0.0] * (len(by) - 2):
        raise RuntimeError("elements that the index does not name have changed: {}".format(by))
    if by[:2] != [1.0, 1.0]:
        raise WrongResult("expected the first two raised by 1.0, got them raised by {} (exactly)".format(by[:2]))
    return {"first": result[:2].tolist(), "last": result[-2:].tolist()}


def control(rows=2):
    return _observe(_raised, rows)


def baseline(rows=2):
    return _observe(torch.compile(_raised), rows)


def index_outside(rows=2):
    """The index is computed before the call, and is a tensor that the graph reads."""
    compiled = torch.compile(_raised_by)
    return _observe(lambda x: compiled(x, _index(x.numel())), rows)


def new_tensor(rows=2):
    """index_put, which does not write into x, of a copy."""
    return _observe(torch.compile(_raised_copy), rows)


def aot_eager(rows=2):
    return _observe(torch.compile(_raised, backend="aot_eager"), rows)


def clone_values(rows=2):
    return _observe(torch.compile(_raised_clones), rows)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
