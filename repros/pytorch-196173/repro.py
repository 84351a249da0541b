"""pytorch-196173: compiled code keeps the answer of an `is` between objects after one was bound anew.

A function asks whether two attributes of a holder are one object. Between two calls one of them is bound to another.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected 1, then -1 after the attribute was bound anew, got 1\.0 and 1\.0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Holder:
    def __init__(self):
        self.left = object()
        self.right = object()
        self.current = self.left
        self.is_left = True


def _suspect(x, holder):
    return x + 1 if holder.current is holder.left else x - 1


def _flagged(x, holder):
    return x + 1 if holder.is_left else x - 1


def _observe(function):
    holder = _Holder()
    first = function(torch.zeros(()), holder).item()
    holder.current, holder.is_left = holder.right, False
    second = function(torch.zeros(()), holder).item()
    if (first, second) != (1.0, -1.0):
        raise WrongResult(
            "expected 1, then -1 after the attribute was bound anew, got {} and {}".format(first, second)
        )
    return {"first": first, "second": second}


def _compiled(function):
    return torch.compile(function, fullgraph=True, backend="eager")


def control():
    return _observe(_suspect)


def baseline():
    return _observe(_compiled(_suspect))


def flag():
    """A bool beside the objects says what is asked; Dynamo guards on its value."""
    return _observe(_compiled(_flagged))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
