"""pytorch-195969: isinstance with a union of protocols is False in compiled code.

The object has the attribute that the first of two runtime protocols asks for.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

from typing import Protocol, runtime_checkable

import torch

SIGNATURE = r"expected 1 for what has the attribute, got 2\.0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


@runtime_checkable
class _Named(Protocol):
    name: str


@runtime_checkable
class _Sized(Protocol):
    size: int


class _Thing:
    def __init__(self):
        self.name = "thing"


def _suspect(x, thing):
    return x + (1 if isinstance(thing, (_Named, _Sized)) else 2)


def _asked(x, thing):
    return x + (1 if hasattr(thing, "name") or hasattr(thing, "size") else 2)


def _told(x, has_one):
    return x + (1 if has_one else 2)


def _observe(function, argument=lambda thing: thing):
    result = function(torch.zeros(()), argument(_Thing())).item()
    if result != 1.0:
        raise WrongResult("expected 1 for what has the attribute, got {}".format(result))
    return {"result": result}


def _compiled(function):
    return torch.compile(function, fullgraph=True, backend="eager")


def control():
    return _observe(_suspect)


def baseline():
    return _observe(_compiled(_suspect))


def asked():
    """The attributes are asked for by name."""
    return _observe(_compiled(_asked))


def outside():
    """isinstance is asked before the compiled function."""
    return _observe(_compiled(_told), lambda thing: isinstance(thing, (_Named, _Sized)))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
