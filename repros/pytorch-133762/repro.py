"""pytorch-133762: `+` of NamedTuple subclasses with __new__ and __add__ concatenates them once compiled.

A function builds a pair (x, 0) and adds it to itself; the class says that this adds the fields. The sum must be the pair
(6, 0).
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
from typing import NamedTuple

import torch

SIGNATURE = (r"call_function UserDefinedClassVariable\(<class '[^'\n]*'>\) \[(?:Tensor|Lazy)Variable(?:Tracker)?\(\)\]"
             r"|No module named 'namedtuple_|expected the pair \(\S+, \S+\), got")


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Fields(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor


class _Pair(_Fields):
    def __new__(cls, a, b=None):
        return super().__new__(cls, a, torch.zeros_like(a) if b is None else b)

    def __add__(self, other):
        return _Pair(self.a + other.a, self.b + other.b)


class _WithoutNew(_Fields):
    def __add__(self, other):
        return _WithoutNew(self.a + other.a, self.b + other.b)


class _Object:
    def __init__(self, a, b=None):
        self.a = a
        self.b = torch.zeros_like(a) if b is None else b

    def __add__(self, other):
        return _Object(self.a + other.a, self.b + other.b)


def _sum(x):
    pair = _Pair(x)
    return pair + pair


def _sum_of_objects(x):
    pair = _Object(x)
    return pair + pair


def _sum_without_new(x):
    pair = _WithoutNew(x, torch.zeros_like(x))
    return pair + pair


def _twice(pair):
    return pair + pair


def _observe(function):
    result = function(torch.tensor(3.0))
    told = tuple(float(x) for x in result) if isinstance(result, tuple) else (float(result.a), float(result.b))
    if told != (6.0, 0.0):
        raise WrongResult("expected the pair (6.0, 0.0), got the {} {} (tolerance 0)".format(type(result).__name__, told))
    return {"type": type(result).__name__, "fields": list(told)}


def _compile(function, fullgraph):
    return torch.compile(function, backend="eager", fullgraph=fullgraph)


def control(fullgraph=True):
    return _observe(_sum)


def baseline(fullgraph=True):
    return _observe(_compile(_sum, fullgraph))


def plain_object(fullgraph=True):
    return _observe(_compile(_sum_of_objects, fullgraph))


def without_new(fullgraph=True):
    """No __new__: the default is filled in where the pair is made."""
    return _observe(_compile(_sum_without_new, fullgraph))


def built_outside(fullgraph=True):
    """The pair is made before, and handed to the compiled function."""
    twice = _compile(_twice, fullgraph)
    return _observe(lambda x: twice(_Pair(x)))


def disabled_sum(fullgraph=True):
    """Python makes the pairs; what comes after is compiled."""
    make = torch._dynamo.disable(_sum)

    def function(x):
        y = x * 1.0
        return make(y)

    return _observe(_compile(function, False))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
