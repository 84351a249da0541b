"""pytorch-186671: a set of a subclass with its own __iter__ is compared by that in compiled code.

Two sets hold 1, 2 and 3; the __iter__ of the second gives something else, which comparing sets does not ask.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the sets to be equal, got unequal"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Special(set):
    def __iter__(self):
        return iter([99])


def _suspect(x, plain, special):
    return x + 1, plain == special


def _observe(function, argument=lambda special: special):
    result, is_equal = function(torch.zeros(2), {1, 2, 3}, argument(_Special((1, 2, 3))))
    if not is_equal:
        raise WrongResult("expected the sets to be equal, got unequal")
    return {"result": result.tolist(), "equal": is_equal}


def _compiled(function):
    return torch.compile(function, fullgraph=True, backend="eager")


def control():
    return _observe(_suspect)


def baseline():
    return _observe(_compiled(_suspect))


def plain():
    """A plain set with the same elements is handed over: set() copies without asking __iter__."""
    return _observe(_compiled(_suspect), set)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
