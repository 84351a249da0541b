"""pytorch-169779: a negative index for torch.index_select is an error in eager mode and wraps around once compiled.

index_select knows no negative indices. Compiled, [-1] must be refused too; the script sees whether rows come back.
First the same function selects row 1, so that it is known to work.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected an error for the index -\d+, got the rows \[[^]x\n]*\]"


class WrongResult(Exception):
    """The computation ended without the error that it must end with."""


def _select(x, index):
    return torch.index_select(x, 0, index)


def _select_checked(x, index):
    torch._assert_async((index >= 0).all())
    return torch.index_select(x, 0, index)


def _checked_outside(function):
    def call(x, index):
        if bool((index < 0).any()):
            raise IndexError("index out of range")
        return function(x, index)

    return call


def _must_refuse(function):
    x = torch.arange(6.0).reshape(3, 2)
    row = function(x, torch.tensor([1])).tolist()
    if row != [[2.0, 3.0]]:
        raise RuntimeError("index 1 selected {}".format(row))
    try:
        got = function(x, torch.tensor([-1])).tolist()
    except (IndexError, RuntimeError) as refusal:
        words = str(refusal).splitlines()[0]
        if not any(word in words for word in ("index", "out of", "assert", "Assert", "nonzero")):
            raise
        return {"row": row, "refused": words}
    raise WrongResult("expected an error for the index -1, got the rows {}".format(got))


def control():
    return _must_refuse(_select)


def baseline():
    return _must_refuse(torch.compile(_select))


def check_outside():
    """The caller looks at the indices before the compiled function."""
    return _must_refuse(_checked_outside(torch.compile(_select)))


def assert_inside():
    """An assertion inside the graph."""
    return _must_refuse(torch.compile(_select_checked))


def aot_eager():
    return _must_refuse(torch.compile(_select, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
