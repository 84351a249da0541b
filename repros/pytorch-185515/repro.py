"""pytorch-185515: view(dtype) of a transposed and contiguous tensor fails to lower in Inductor.

Floats are transposed, made contiguous and viewed as bytes. Inductor looks at the strides that the tensor had before it
was made contiguous. The bytes must be those of an uncompiled call.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"self\.stride\(-1\) must be 1 to view"


class WrongResult(Exception):
    """The code compiled, and computes something else than it should."""


def _bytes(x):
    return x.t().contiguous().view(torch.uint8)


def _cloned(x):
    return x.t().contiguous().clone().view(torch.uint8)


def _new_tensor(x):
    y = torch.empty(x.shape[1], x.shape[0], dtype=x.dtype)
    y.copy_(x.t())
    return y.view(torch.uint8)


def _view_first(x):
    rows, columns = x.shape
    return x.view(torch.uint8).view(rows, columns, 4).transpose(0, 1).reshape(columns, rows * 4)


def _transposed(x):
    return x.t().contiguous()


def _outside(compiled):
    def function(x):
        return compiled(x).view(torch.uint8)
    return function


def _observe(function):
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    got, expected = function(x), _bytes(x)
    if got.tolist() != expected.tolist():
        raise WrongResult("expected {}, got {}".format(expected.tolist(), got.tolist()))
    return {"shape": list(got.shape), "sum": int(got.sum())}


def control():
    return _observe(_bytes)


def baseline():
    return _observe(torch.compile(_bytes))


def view_first():
    """Bytes first, and then their groups of four are transposed."""
    return _observe(torch.compile(_view_first))


def outside():
    """The view is taken of what the compiled function returns."""
    return _observe(_outside(torch.compile(_transposed)))


def copy_into_empty():
    """A tensor that never had other strides."""
    return _observe(torch.compile(_new_tensor))


def aot_eager():
    return _observe(torch.compile(_bytes, backend="aot_eager"))


def clone():
    """The clone is taken out again."""
    return _observe(torch.compile(_cloned))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
