"""pytorch-198189: OrderedDict.move_to_end in compiled code leaves the order of a dict that was passed in as it was.

The first of three keys is moved to the end; the dict must then have the order b, c, a.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import collections

import torch

SIGNATURE = r"expected the order b, c, a after move_to_end, got a, b, c"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(cache, x):
    cache.move_to_end("a")
    return x + 1


def _reinserted(cache, x):
    cache["a"] = cache.pop("a")
    return x + 1


@torch.compiler.disable
def _touch(cache):
    cache.move_to_end("a")


def _in_python(cache, x):
    _touch(cache)
    return x + 1


def _observe(function):
    cache = collections.OrderedDict(a=1, b=2, c=3)
    result = function(cache, torch.ones(2))
    order = ", ".join(cache)
    if order != "b, c, a":
        raise WrongResult("expected the order b, c, a after move_to_end, got {}".format(order))
    evicted = cache.popitem(last=False)[0]
    return {"result": result.tolist(), "order": order, "evicted": evicted}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, backend="eager"))


def reinserted():
    """Taken out and put in again, which Dynamo replays."""
    return _observe(torch.compile(_reinserted, backend="eager"))


def in_python():
    """Dynamo leaves the call to Python."""
    return _observe(torch.compile(_in_python, backend="eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
