"""pytorch-174166: an AttributeError of a tensor is not caught by the except of compiled code.

A function asks a tensor for an attribute that it may lack, and computes something else where it does.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"object has no attribute 'scale_of_mine'"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x):
    try:
        return x * x.scale_of_mine
    except AttributeError:
        return x * 2


def _asked(x):
    return x * x.scale_of_mine if hasattr(x, "scale_of_mine") else x * 2


def _defaulted(x):
    return x * getattr(x, "scale_of_mine", 2)


def _observe(function):
    result = function(torch.ones(2)).tolist()
    if result != [2.0, 2.0]:
        raise WrongResult("expected 2 and 2, got {}".format(result))
    return {"result": result}


def _compiled(function):
    return torch.compile(function, fullgraph=True, backend="eager")


def control():
    return _observe(_suspect)


def baseline():
    return _observe(_compiled(_suspect))


def asked():
    """hasattr instead of try."""
    return _observe(_compiled(_asked))


def defaulted():
    """getattr with a default instead of try."""
    return _observe(_compiled(_defaulted))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
