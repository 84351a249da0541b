"""pytorch-172666: two equal tuples of a subclass are unequal in compiled code.

A pair that is passed in is compared with one of the module's; both hold 1 and -1.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected -1 for equal pairs, got 1\.0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Pair(tuple):
    pass


_WANTED = _Pair((1, -1))


def _suspect(x, pair):
    return x - 1 if pair == _WANTED else x + 1


def _as_tuples(x, pair):
    return x - 1 if (pair[0], pair[1]) == (_WANTED[0], _WANTED[1]) else x + 1


def _asked_before(x, is_wanted):
    return x - 1 if is_wanted else x + 1


def _observe(function, argument=lambda pair: pair):
    result = function(torch.zeros(()), argument(_Pair((1, -1)))).item()
    if result != -1.0:
        raise WrongResult("expected -1 for equal pairs, got {}".format(result))
    return {"result": result}


def _compiled(function):
    return torch.compile(function, fullgraph=True, backend="eager")


def control():
    return _observe(_suspect)


def baseline():
    return _observe(_compiled(_suspect))


def elements():
    """The elements are compared, in tuples that are plain ones."""
    return _observe(_compiled(_as_tuples))


def outside():
    """The comparison is made before the compiled function."""
    return _observe(_compiled(_asked_before), lambda pair: pair == _WANTED)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
