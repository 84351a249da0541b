"""pytorch-185885: a compiled torch.index_add takes a negative index and adds to the last row; eager mode refuses it.

Ones are added to rows 0 and -1 of four rows of zeros. Without compiling this is an error; compiled it has to be one.
That eager mode raises is what the control shows.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected an error for index -\d+, got row sums "


class WrongResult(Exception):
    """Something was returned where an error was due."""


def _add(x, index, source):
    return torch.index_add(x, 0, index, source)


def _checked_before(function):
    def call(x, index, source):
        if int(index.min()) < 0:
            raise IndexError("index out of range: {}".format(int(index.min())))
        return function(x, index, source)
    return call


def _moved(x, index, source):
    return torch.index_add(x, 0, torch.where(index < 0, x.shape[0], index), source)


def _asserted(x, index, source):
    torch._assert_async((index >= 0).all())
    return torch.index_add(x, 0, index, source)


def _asserted_with_message(x, index, source):
    torch._assert_async((index >= 0).all(), "index out of range")
    return torch.index_add(x, 0, index, source)


def _observe(function):
    good = function(torch.zeros(4, 3), torch.tensor([0, 3]), torch.ones(2, 3))
    if good.sum(1).tolist() != [3.0, 0.0, 0.0, 3.0]:  # a function that refuses everything has shown nothing
        raise RuntimeError("rows 0 and 3 do not sum to what they should: {}".format(good.tolist()))
    try:
        rows = function(torch.zeros(4, 3), torch.tensor([0, -1]), torch.ones(2, 3))
    except (IndexError, RuntimeError) as refusal:
        text = str(refusal)
        words = ("index out of", "out of bounds", "out of range", "nonzero value", "ssertion")
        if not any(word in text for word in words):
            raise
        return {"refused": type(refusal).__name__, "good_rows": good.sum(1).tolist()}
    raise WrongResult("expected an error for index -1, got row sums {}".format(rows.sum(1).tolist()))


def control():
    return _observe(_add)


def baseline():
    return _observe(torch.compile(_add, fullgraph=True, dynamic=True))


def check_before():
    """The index is looked at before the compiled function is called."""
    return _observe(_checked_before(torch.compile(_add, fullgraph=True, dynamic=True)))


def move_out_of_range():
    """A negative index becomes one past the end, which the compiled code does refuse."""
    return _observe(torch.compile(_moved, fullgraph=True, dynamic=True))


def assert_inside():
    """A check that is part of the graph."""
    return _observe(torch.compile(_asserted, fullgraph=True, dynamic=True))


def assert_with_message():
    """A check that is part of the graph, in the form that newer releases keep."""
    return _observe(torch.compile(_asserted_with_message, fullgraph=True, dynamic=True))


def aot_eager():
    return _observe(torch.compile(_add, fullgraph=True, dynamic=True, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
