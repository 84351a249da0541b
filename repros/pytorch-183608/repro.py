"""pytorch-183608: a compiled F.embedding takes a negative index, which eager mode refuses, and returns some row.

A table of 5 rows is asked for rows 2, -2 and 4. Without compiling this is an IndexError; compiled it has to be an error
too. That eager mode raises is what the control shows.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch
import torch.nn.functional as F

SIGNATURE = r"expected an error for index -\d+, got rows "


class WrongResult(Exception):
    """Something was returned where an error was due."""


def _embedding(index, table):
    return F.embedding(index, table)


def _checked(index, table):
    torch._assert_async((index >= 0).all())
    return F.embedding(index, table)


def _moved(index, table):
    return F.embedding(torch.where(index < 0, table.shape[0], index), table)


def _checked_before(function):
    def call(index, table):
        if int(index.min()) < 0:
            raise IndexError("index out of range: {}".format(int(index.min())))
        return function(index, table)
    return call


def _observe(function):
    table = torch.arange(10.0).reshape(5, 2)
    good = function(torch.tensor([2, 3, 4]), table)  # a function that refuses everything has shown nothing
    if good.tolist() != table[2:].tolist():
        raise RuntimeError("rows 2, 3 and 4 are not what they should be: {}".format(good.tolist()))
    try:
        rows = function(torch.tensor([2, -2, 4]), table)
    except (IndexError, RuntimeError) as refusal:
        text = str(refusal)
        words = ("index out of", "out of bounds", "out of range", "nonzero value", "ssertion")
        if not any(word in text for word in words):
            raise
        return {"refused": type(refusal).__name__, "good_rows": good.tolist()}
    raise WrongResult("expected an error for index -2, got rows {}".format(rows.tolist()))


def control():
    return _observe(_embedding)


def baseline():
    return _observe(torch.compile(_embedding, fullgraph=True))


def check_before():
    """The index is looked at before the compiled function is called."""
    return _observe(_checked_before(torch.compile(_embedding, fullgraph=True)))


def move_out_of_range():
    """A negative index becomes one past the end, which the compiled code does refuse."""
    return _observe(torch.compile(_moved, fullgraph=True))


def assert_inside():
    """A check that is part of the graph."""
    return _observe(torch.compile(_checked, fullgraph=True))


def aot_eager():
    return _observe(torch.compile(_embedding, fullgraph=True, backend="aot_eager"))


def assert_indirect():
    """Inductor's own check, which is on by default: it comes after the index was wrapped."""
    return _observe(torch.compile(_embedding, fullgraph=True, options={"assert_indirect_indexing": True}))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
