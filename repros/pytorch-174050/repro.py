"""pytorch-174050: an object whose __class__ was assigned keeps its old class in compiled code.

An object of a base class is made, told that it is of a derived one, and asked whether it is.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the derived class after the assignment, got the base"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Base:
    pass


class _Derived(_Base):
    pass


def _suspect(x):
    made = _Base()
    made.__class__ = _Derived
    return x + 1, isinstance(made, _Derived)


def _made_so(x):
    made = _Derived()
    return x + 1, isinstance(made, _Derived)


def _observe(function):
    result, is_derived = function(torch.zeros(2))
    if not is_derived:
        raise WrongResult("expected the derived class after the assignment, got the base")
    return {"result": result.tolist(), "derived": is_derived}


def _compiled(function):  # a graph break would be right too
    return torch.compile(function, backend="eager")


def control():
    return _observe(_suspect)


def baseline():
    return _observe(_compiled(_suspect))


def derived():
    """The object is made as one of the derived class."""
    return _observe(_compiled(_made_so))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
