"""pytorch-192071: torch.compile of a class ends in an AttributeError where caching_precompile is on.

A class whose __call__ doubles its argument is decorated, and an object of it called.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"has no attribute '__code__'"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _make():
    class Double:
        def __call__(self, x):
            return x * 2

    return Double


def _observe(decorate):
    with torch._dynamo.config.patch(caching_precompile=True):
        double = decorate(_make())()
        result = double(torch.arange(3.0))
    if result.tolist() != [0.0, 2.0, 4.0]:
        raise WrongResult("expected 0, 2 and 4, got {}".format(result.tolist()))
    return {"result": result.tolist()}


def _suspect(cls):
    return torch.compile(cls, backend="eager")


def _call_alone(cls):
    cls.__call__ = torch.compile(cls.__call__, backend="eager")
    return cls


def control():
    return _observe(lambda cls: cls)


def baseline():
    return _observe(_suspect)


def call_alone():
    """The method is compiled and not the class."""
    return _observe(_call_alone)


def precompile_off():
    """The cache is switched off where the class is decorated."""

    def decorate(cls):
        with torch._dynamo.config.patch(caching_precompile=False):
            return _suspect(cls)

    return _observe(decorate)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
