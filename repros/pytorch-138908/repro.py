"""pytorch-138908: `y[i] += y[i]` with one index twice is applied twice by Inductor on the CPU.

The index (0, 0) names the first row of y two times. Eager mode reads the row, doubles it and writes it twice: it comes out
doubled, once. The script compares every row, with a tolerance of 1e-6.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected the row times \S+, got it times \S+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _doubled(i, y):
    i = i + 10
    y[i] += y[i]


def _cloned(i, y):
    i = i + 10
    y[i] += y[i].clone()


def _by_name(i, y):
    i = i + 10
    rows = y[i]
    y[i] = rows + rows


def _new_tensor(i, y):
    i = i + 10
    rows = y[i]
    return y.index_put((i,), rows + rows)


def _sum_outside(compiler):
    """Only the values are compiled; Python writes them."""
    compute = compiler(lambda i, y: y[i + 10] + y[i + 10])

    def function(i, y):
        y[i + 10] = compute(i, y)

    return function


def _observe(function, duplicates):
    torch.manual_seed(0)
    i = torch.tensor([[-10, -10]] if duplicates else [[-10, -9]])
    y = torch.rand(4, 32) + 1.0
    before = y.clone()
    with torch.no_grad():
        result = function(i, y)
    y = y if result is None else result
    factors = [2.0, 1.0, 1.0, 1.0] if duplicates else [2.0, 2.0, 1.0, 1.0]
    for row, factor in enumerate(factors):
        if not torch.allclose(y[row], before[row] * factor, rtol=1e-6, atol=0):
            got = float((y[row] / before[row]).mean())
            raise WrongResult("row {}: expected the row times {}, got it times {:.1f} (tolerance 1e-6)".format(
                row, factor, got))
    return {"factors": [round(float((y[row] / before[row]).mean()), 6) for row in range(4)]}


def _compile(function):
    return torch.compile(function, dynamic=True)


def control(duplicates=True):
    return _observe(_doubled, duplicates)


def baseline(duplicates=True):
    return _observe(_compile(_doubled), duplicates)


def values_outside(duplicates=True):
    return _observe(_sum_outside(_compile), duplicates)


def new_tensor(duplicates=True):
    """index_put, which does not write into y, of a copy."""
    return _observe(_compile(_new_tensor), duplicates)


def aot_eager(duplicates=True):
    return _observe(torch.compile(_doubled, dynamic=True, backend="aot_eager"), duplicates)


def clone_values(duplicates=True):
    return _observe(_compile(_cloned), duplicates)


def two_statements(duplicates=True):
    return _observe(_compile(_by_name), duplicates)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
