"""pytorch-193649: compiled code calls methods of set on dict_keys, which has none of them.

`keys.union(...)` of a dict's keys is an AttributeError in Python. Compiled it has to be an error too.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected an error, for dict_keys has no method union; got \{1, 2, 3\}"


class WrongResult(Exception):
    """Something was returned where an error was due."""


def _suspect(keys, x):
    return keys.union({3}), x + 1


def _as_set(keys, x):
    return set(keys).union({3}), x + 1


def _observe(function, refuses=True):
    union, result = function({1, 2}, torch.zeros(2))  # a function that refuses everything has shown nothing
    if union != {1, 2, 3}:
        raise RuntimeError("the union of two sets is {}".format(union))
    try:
        union, _ = function({1: 0, 2: 0}.keys(), torch.zeros(2))
    except Exception as refusal:  # its class depends on the release
        if "union" not in str(refusal):
            raise
        return {"result": result.tolist(), "keys": "refused"}
    if refuses:
        raise WrongResult("expected an error, for dict_keys has no method union; got {}".format(union))
    return {"result": result.tolist(), "keys": sorted(union)}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, fullgraph=True, backend="eager"))


def as_set():
    """A set made of the keys, which has the method."""
    return _observe(torch.compile(_as_set, fullgraph=True, backend="eager"), refuses=False)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
