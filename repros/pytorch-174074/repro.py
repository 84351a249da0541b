"""pytorch-174074: x[[0, 0]] += x[[0, 0]] is applied twice when compiled with Inductor.

The statement doubles row 0 once, however often the index names it: the right-hand side is computed before anything is
stored. Each arm does it to a row of two numbers and compares with twice the row.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected row \d+ to be \[[^]x\n]*\] \(tolerance 1e-12\), got "


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _list(x, index):
    x[[0, 0]] += x[[0, 0]]
    return x


def _tensor(x, index):
    """The same with an index that is an input: nothing about it is known while compiling."""
    x[index] *= 2
    return x


_CASES = {"list": _list, "tensor": _tensor}


def _integer_index(x, index):
    x[0] += x[0]
    return x


def _new_tensor(x, index):
    return torch.index_put(x, (index,), x[index] + x[index])


def _cloned_rows(x, index):
    rows = x[[0, 0]].clone()
    x[[0, 0]] = rows + rows
    return x


def _cloned_source(x, index):
    source = x.clone()
    x[[0, 0]] = source[[0, 0]] + source[[0, 0]]
    return x


def _observe(function):
    x = torch.tensor([[-0.875, 0.125]], dtype=torch.float64)
    result = function(x, torch.tensor([0, 0]))
    if not torch.allclose(result, torch.tensor([[-1.75, 0.25]], dtype=torch.float64), rtol=0, atol=1e-12):
        got = result[0].tolist()
        raise WrongResult("expected row 0 to be [-1.75, 0.25] (tolerance 1e-12), got {}".format(got))
    return {"row_0": result[0].tolist(), "dtype": str(result.dtype)}


def control(case="list"):
    return _observe(_CASES[case])


def baseline(case="list"):
    return _observe(torch.compile(_CASES[case]))


def integer_index(case="list"):
    """One row, named by an integer: a view, and nothing to gather."""
    return _observe(torch.compile(_integer_index))


def out_of_place(case="list"):
    """index_put into a new tensor: what is read is not what is written."""
    return _observe(torch.compile(_new_tensor))


def aot_eager(case="list"):
    return _observe(torch.compile(_CASES[case], backend="aot_eager"))


def clone_rows(case="list"):
    """The clone of what was read is taken out again."""
    return _observe(torch.compile(_cloned_rows))


def clone_source(case="list"):
    """So is a clone of the whole tensor."""
    return _observe(torch.compile(_cloned_source))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
