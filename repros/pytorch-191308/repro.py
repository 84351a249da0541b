"""pytorch-191308: batched matmul of int8 comes back as int64 from Inductor on the CPU.

The product of two small int8 tensors is computed in eager mode and compiled; the dtypes must agree, and the numbers.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected dtype torch\.int8, got torch\.int\d+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _product(a, b):
    return torch.matmul(a, b)


def _product_of_slices(a, b):
    return torch.mm(a[0], b[0]).unsqueeze(0)


def _product_cast(a, b):
    return torch.matmul(a, b).to(torch.int8)


def _observe(function, n):
    a = torch.ones(1, 1, n, dtype=torch.int8)
    b = torch.ones(1, n, n, dtype=torch.int8)
    result = function(a, b)
    if result.dtype != torch.int8:
        raise WrongResult("expected dtype torch.int8, got {}".format(result.dtype))
    if not bool((result == n).all()):
        raise WrongResult("expected {} everywhere, got {}".format(n, result.flatten().tolist()))
    return {"dtype": str(result.dtype), "first": int(result.flatten()[0]), "elements": result.numel()}


def control(n=2):
    return _observe(_product, n)


def baseline(n=2):
    return _observe(torch.compile(_product, fullgraph=True), n)


def two_dimensional(n=2):
    """A product of matrices is not broken up."""
    return _observe(torch.compile(_product_of_slices, fullgraph=True), n)


def cast_outside(n=2):
    """The cast is eager's, and sees the int64."""
    compiled = torch.compile(_product, fullgraph=True)
    return _observe(lambda a, b: compiled(a, b).to(torch.int8), n)


def aot_eager(n=2):
    return _observe(torch.compile(_product, backend="aot_eager", fullgraph=True), n)


def cast_inside(n=2):
    """The graph says int8 of the product already, so the cast is taken out."""
    return _observe(torch.compile(_product_cast, fullgraph=True), n)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
