"""pytorch-176851: a class attribute that is changed between two calls keeps its old value in compiled code.

A function multiplies by an attribute of a class, which is 1 at the first call and 10 at the second.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import enum

import torch

SIGNATURE = r"expected 4 and then 40, got 4\.0 and 4\.0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Size(enum.Enum):
    SMALL = 1.0
    LARGE = 10.0


class _State:
    factor = 1.0
    size = _Size.SMALL


class _Settings:
    def __init__(self):
        self.factor = 1.0
        self.size = _Size.SMALL


_SETTINGS = _Settings()


def _by_float(x):
    return x * _State.factor


def _by_enum(x):
    if _State.size is _Size.LARGE:
        return x * 10.0
    return x * 1.0


def _by_float_of_instance(x):
    return x * _SETTINGS.factor


def _by_enum_of_instance(x):
    if _SETTINGS.size is _Size.LARGE:
        return x * 10.0
    return x * 1.0


def _by_float_given(x, factor):
    return x * factor


def _by_enum_given(x, size):
    if size is _Size.LARGE:
        return x * 10.0
    return x * 1.0


_KINDS = {"float": _by_float, "enum": _by_enum}


def _set(factor):
    _State.factor = _SETTINGS.factor = factor
    _State.size = _SETTINGS.size = _Size(factor)


def _observe(function):
    got = []
    for factor in (1.0, 10.0):
        _set(factor)
        got.append(function(torch.tensor([4.0])).item())
    if got != [4.0, 40.0]:
        raise WrongResult("expected 4 and then 40, got {} and {}".format(*got))
    return {"got": got}


def control(kind="float"):
    return _observe(_KINDS[kind])


def baseline(kind="float"):
    return _observe(torch.compile(_KINDS[kind], backend="eager"))


def instance(kind="float"):
    """The value is an attribute of an object instead of its class."""
    function = {"float": _by_float_of_instance, "enum": _by_enum_of_instance}[kind]
    return _observe(torch.compile(function, backend="eager"))


def argument(kind="float"):
    """The value is read outside and handed over."""
    if kind == "enum":
        by_enum = torch.compile(_by_enum_given, backend="eager")
        return _observe(lambda x: by_enum(x, _State.size))
    by_float = torch.compile(_by_float_given, backend="eager")
    return _observe(lambda x: by_float(x, _State.factor))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
