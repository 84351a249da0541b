"""pytorch-196127: compiled code keeps the answer of isinstance with a protocol for objects that differ.

A runtime protocol asks for an attribute. A function is called with an object that has it, then with one that has not.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

from typing import Protocol, runtime_checkable

import torch

SIGNATURE = r"expected 1, then -1 without the attribute, got 1\.0 and 1\.0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


@runtime_checkable
class _Named(Protocol):
    name: str


class _Thing:
    def __init__(self, is_named):
        if is_named:
            self.name = "thing"


def _suspect(x, thing):
    return x + 1 if isinstance(thing, _Named) else x - 1


def _asked(x, thing):
    return x + 1 if hasattr(thing, "name") else x - 1


def _told(x, is_named):
    return x + 1 if is_named else x - 1


def _observe(function, argument=lambda thing: thing):
    first, second = (function(torch.zeros(()), argument(_Thing(is_named))).item() for is_named in (True, False))
    if (first, second) != (1.0, -1.0):
        raise WrongResult("expected 1, then -1 without the attribute, got {} and {}".format(first, second))
    return {"first": first, "second": second}


def _compiled(function):
    return torch.compile(function, fullgraph=True, backend="eager")


def control():
    return _observe(_suspect)


def baseline():
    return _observe(_compiled(_suspect))


def asked():
    """hasattr, on whose answer Dynamo guards."""
    return _observe(_compiled(_asked))


def outside():
    """isinstance is asked before the compiled function."""
    return _observe(_compiled(_told), lambda thing: isinstance(thing, _Named))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
