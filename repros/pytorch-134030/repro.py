"""pytorch-134030: a compiled generator runs to its end where it is made.

A generator sets a scale to 2, yields x + 1 and sets the scale back in `finally`. What is computed while it is suspended
must see the 2.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected 4, computed while the generator is suspended, got 2\.0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _scaled(scale, x):
    try:
        scale[0] = 2.0
        yield x + 1
    finally:
        scale[0] = 1.0


class _Scaled:
    def __init__(self, scale, x):
        self.scale, self.x = scale, x

    def __enter__(self):
        self.scale[0] = 2.0
        return self.x + 1

    def __exit__(self, *failure):
        self.scale[0] = 1.0


def _suspect(x):
    scale = [1.0]
    generator = _scaled(scale, x)
    y = next(generator)
    return y * scale[0]


def _with_class(x):
    scale = [1.0]
    with _Scaled(scale, x) as y:
        return y * scale[0]


def _with_callback(x):
    return _call_scaled([1.0], x, lambda y, scale: y * scale[0])


def _call_scaled(scale, x, body):
    scale[0] = 2.0
    result = body(x + 1, scale)
    scale[0] = 1.0
    return result


def _observe(function):
    got = function(torch.ones(()))
    if got.item() != 4.0:
        raise WrongResult("expected 4, computed while the generator is suspended, got {}".format(got.item()))
    return {"got": got.item()}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, backend="eager"))


def with_class():
    """A context manager with __enter__ and __exit__ in place of the generator."""
    return _observe(torch.compile(_with_class, backend="eager"))


def with_callback():
    """What is to run in between is a function, and there is no generator."""
    return _observe(torch.compile(_with_callback, backend="eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
