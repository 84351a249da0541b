"""pytorch-176599: compiled code writes past the setter of a property.

An object made in a compiled function has a property whose setter doubles and whose getter adds one.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected 11 through setter and getter, got \d+\.0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Box:
    def __init__(self, value):
        self._value = value

    def get(self):
        return self._value + 1

    def put(self, value):
        self._value = value * 2

    value = property(get, put)


def _suspect(x):
    box = _Box(3)
    box.value = 5
    return x + box.value


def _by_methods(x):
    box = _Box(3)
    box.put(5)
    return x + box.get()


def _observe(function):
    result = function(torch.zeros(())).item()
    if result != 11.0:
        raise WrongResult("expected 11 through setter and getter, got {}".format(result))
    return {"result": result}


def _compiled(function):
    return torch.compile(function, fullgraph=True, backend="eager")


def control():
    return _observe(_suspect)


def baseline():
    return _observe(_compiled(_suspect))


def methods():
    """The functions of the property, called as methods."""
    return _observe(_compiled(_by_methods))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
