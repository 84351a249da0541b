"""deepmd-kit-wheel-strides: the operators of released DeePMD-kit wheels refuse a transposed input.

tabulate_fusion_se_a of the wheel's own operator library is called with the same environment matrix in two memory layouts.
Only the library is loaded; the deepmd package, which wants TensorFlow and more, is not imported.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import importlib.metadata

import torch

SIGNATURE = r"view size is not compatible with input tensor's size and stride"

WIDTH = 8  # of the last layer
STEPS = (0.0, 1.0, 2.0, 0.1, 0.2)  # of the table: lower, upper and largest argument, fine and coarse step


class WrongResult(Exception):
    """The operator returned, and its numbers are wrong."""


class NotApplicable(Exception):
    """The wheel's library was built for another torch."""


def _load():
    library = importlib.metadata.distribution("deepmd-kit").locate_file("deepmd/lib/libdeepmd_op_pt.so")
    try:
        torch.ops.load_library(str(library))
    except OSError as failure:
        if "undefined symbol" not in str(failure):
            raise
        raise NotApplicable("this deepmd-kit was built for another torch: {}".format(failure)) from failure


def _inputs():
    """A table of random polynomials, and an environment matrix of 4 atoms with 6 neighbours each."""
    torch.manual_seed(0)
    lower, upper, largest, fine, coarse = STEPS
    rows = round((upper - lower) / fine) + round((largest - upper) / coarse)
    table = torch.randn(rows, WIDTH * 6, dtype=torch.float64)
    return table, torch.tensor([*STEPS, -1.0], dtype=torch.float64), torch.rand(4, 6, 4, dtype=torch.float64)


def _fuse(table, info, matrix, argument):
    return torch.ops.deepmd.tabulate_fusion_se_a(table, info, argument, matrix, WIDTH)[0]


def _transposed(tensor):
    """The same numbers in reversed order of memory."""
    order = tuple(reversed(range(tensor.dim())))
    return tensor.permute(order).contiguous().permute(order)


def _run(lay_out, gradient):
    """Compute with the matrix that `lay_out` makes, and with a contiguous one; `gradient` compares backward too."""
    _load()
    table, info, matrix = _inputs()
    argument = matrix[:, :, :1].reshape(-1, 1).contiguous()
    ends = []
    for given in (matrix.clone(), lay_out(matrix)):
        given.requires_grad_()
        fused = _fuse(table, info, given, argument)
        if gradient:
            pulled = torch.linspace(-1, 1, fused.numel(), dtype=fused.dtype).view(fused.shape)
            fused.backward(_transposed(pulled) if ends else pulled)
        ends.append((fused.detach(), given.grad if gradient else torch.zeros(1)))
    (expected, expected_gradient), (got, got_gradient) = ends
    if not (torch.equal(got, expected) and torch.equal(got_gradient, expected_gradient)):
        raise WrongResult("expected what a contiguous matrix gives, got something else, tolerance 0")
    version = importlib.metadata.version("deepmd-kit")
    return {"deepmd_kit": version, "sum": float(got.sum()), "gradient_sum": float(got_gradient.sum())}


def control(gradient=False):
    """Contiguous from the start."""
    return _run(torch.clone, gradient=False)


def baseline(gradient=False):
    return _run(torch.clone if gradient else _transposed, gradient)


def caller_contiguous(gradient=False):
    """The same matrix, copied before the call."""
    return _run(lambda matrix: _transposed(matrix).contiguous(), gradient)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
