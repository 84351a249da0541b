"""pytorch-196167: torch.utils' OrderedSet comes out of compiled code in another order.

The numbers 3, 1 and 2 are put into an OrderedSet in a compiled function that returns it.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch
from torch.utils._ordered_set import OrderedSet

SIGNATURE = r"expected the order 3, 1, 2, got 1, 2, 3"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x):
    return OrderedSet([3, 1, 2]), x + 1


def _keys(x):
    return dict.fromkeys([3, 1, 2]), x + 1


def _items(x):
    return list(OrderedSet([3, 1, 2])), x + 1


def _observe(function):
    numbers, result = function(torch.zeros(2))
    order = ", ".join(str(number) for number in numbers)
    if order != "3, 1, 2":
        raise WrongResult("expected the order 3, 1, 2, got {}".format(order))
    return {"order": order, "result": result.tolist()}


def _compiled(function):
    return torch.compile(function, fullgraph=True, backend="eager")


def control():
    return _observe(_suspect)


def baseline():
    return _observe(_compiled(_suspect))


def dictionary():
    """The keys of a dict keep their order."""
    return _observe(_compiled(_keys))


def listed():
    """The order is read inside of what is compiled."""
    return _observe(_compiled(_items))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
