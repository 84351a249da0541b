"""pytorch-131411: reading a field of a namedtuple subclass with a __new__ of its own is Unsupported in Dynamo.

A module adds `self.config.val` to its input, where the config is a namedtuple subclass. Compiled without graph breaks it
must give 11.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
from collections import namedtuple

import torch

SIGNATURE = (r"call_function args: TensorVariable\(\) "
             r"(GetAttrVariable\(UserDefinedObjectVariable\(\w+\), \w+\)|UserDefinedObjectVariable\(_tuplegetter\))")


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Config(namedtuple("_Config", ["val"])):
    def __new__(cls, val):
        return super().__new__(cls, val)


def _subclass():
    """A subclass that changes nothing."""
    class Config(namedtuple("Config", ["val"])):
        pass

    return Config(10)


class _Object:
    def __init__(self, val):
        self.val = val


class _Field(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config

    def forward(self, x):
        return torch.add(x, self.config.val)


class _Item(_Field):
    def forward(self, x):
        return torch.add(x, self.config[0])


class _AfterAnother(_Field):
    """An operator before the one that reads the config, for the graph up to the break."""

    def forward(self, x):
        y = x * 1.0
        return torch.add(y, self.config.val)


class _Value(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.val = config.val

    def forward(self, x):
        return torch.add(x, self.val)


def _observe(function):
    result = function(torch.ones(2)).tolist()
    if result != [11.0, 11.0]:
        raise WrongResult("expected [11.0, 11.0], got {} (tolerance 0)".format(result))
    return {"result": result}


def _compile(module, fullgraph=True):
    return torch.compile(module, backend="eager", fullgraph=fullgraph)


def control():
    return _observe(_Field(_Config(10)))


def baseline():
    return _observe(_compile(_Field(_Config(10))))


def by_index():
    return _observe(_compile(_Item(_Config(10))))


def value_in_init():
    return _observe(_compile(_Value(_Config(10))))


def bare_namedtuple():
    """The type that namedtuple makes, no subclass of it."""
    return _observe(_compile(_Field(namedtuple("Config", ["val"])(10))))


def without_new():
    return _observe(_compile(_Field(_subclass())))


def plain_object():
    return _observe(_compile(_Field(_Object(10))))


def graph_breaks():
    return _observe(_compile(_AfterAnother(_Config(10)), fullgraph=False))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
