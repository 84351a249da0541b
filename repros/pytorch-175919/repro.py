"""pytorch-175919: compiled aten.resize of an overlapping view reads past the end of the tensor.

One number, seen as a hundred by a stride of zero, is resized to fifty; and a view that begins in the middle of ten
numbers to its own size. Both must be what eager gives.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected \d+ numbers of the view, got only \d+ of them"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _seen(x, view):
    return x[5:] if view == "offset" else torch.as_strided(x, (100,), (0,))


def _suspect(x, view):
    return torch.ops.aten.resize(_seen(x, view), (5 if view == "offset" else 50,)) + 1


def _by_slice(x, view):
    return _seen(x, view)[: 5 if view == "offset" else 50] + 1


def _by_expand(x, view):
    return x[:1].expand(50) + 1


def _observe(function, view):
    expected = [6.0, 7.0, 8.0, 9.0, 10.0] if view == "offset" else [1.0] * 50
    got = (function(torch.arange(1.0, 11.0), view) - 1).tolist()
    right = sum(mine == theirs for mine, theirs in zip(expected, got))
    if len(got) != len(expected) or right != len(expected):
        raise WrongResult("expected {} numbers of the view, got only {} of them".format(len(expected), right))
    return {"numbers": got}


def control(view="stride_zero"):
    return _observe(_suspect, view)


def baseline(view="stride_zero"):
    return _observe(torch.compile(_suspect), view)


def slice_instead(view="stride_zero"):
    return _observe(torch.compile(_by_slice), view)


def expand_instead(view="stride_zero"):
    return _observe(torch.compile(_by_expand), view)


def aot_eager(view="stride_zero"):
    return _observe(torch.compile(_suspect, backend="aot_eager"), view)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
