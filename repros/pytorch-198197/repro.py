"""pytorch-198197: compiled code takes a builtin type to have an attribute that it lacks.

`getattr(int, name)` raises AttributeError for a name that is not there; the function computes by whether it did.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected -1 for an attribute that is not there, got 1\.0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x):
    try:
        getattr(int, "not_there")
    except AttributeError:
        return x - 1
    else:
        return x + 1


def _asked(x):
    return x + 1 if hasattr(int, "not_there") else x - 1


def _told(x, is_there):
    return x + 1 if is_there else x - 1


def _observe(function, *arguments):
    result = function(torch.zeros(()), *arguments).item()
    if result != -1.0:
        raise WrongResult("expected -1 for an attribute that is not there, got {}".format(result))
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


def outside():
    """The type is asked before the compiled function."""
    return _observe(_compiled(_told), hasattr(int, "not_there"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
