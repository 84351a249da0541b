"""pytorch-180164: the gradient of slice_scatter under a plain sum is zero, or ignores the slice.

Elements of a tensor are replaced by another tensor and summed, in eager mode and compiled; the gradients that reach the
replaced tensor are compared.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected x\.grad of eager mode, got \d+ of \d+ other elements"


class WrongResult(Exception):
    """The backward pass ended without an error and with a wrong gradient."""


def _sum_of_scattered(x, y, start, dims):
    return torch.slice_scatter(x, y, dim=1, start=start, end=start + 6).sum(dim=dims)


def _sum_of_clone(x, y, start, dims):
    return torch.slice_scatter(x, y, dim=1, start=start, end=start + 6).clone().sum(dim=dims)


def _sum_of_assigned(x, y, start, dims):
    out = x.clone()
    out[:, start:start + 6] = y
    return out.sum(dim=dims)


def _sum_of_parts(x, y, start, dims):
    return torch.cat([x[:, :start], y, x[:, start + 6:]], dim=1).sum(dim=dims)


def _gradients(function, start, total):
    torch.manual_seed(0)
    x = torch.randn(4, 13, 33, device="cuda", requires_grad=True)
    y = torch.randn(4, 6, 33, device="cuda", requires_grad=True)
    dims = (0, 1, 2) if total else (1,)
    function(x, y, start, dims).sum().backward()
    return x.grad, y.grad


def _compare(function, start, total):
    """The gradients of `function` with those of the scatter in eager mode, which are zeros and ones."""
    x_expected, y_expected = _gradients(_sum_of_scattered, start, total)
    x_got, y_got = _gradients(function, start, total)
    torch.cuda.synchronize()
    wrong = int((x_got != x_expected).sum())
    if wrong:
        raise WrongResult("expected x.grad of eager mode, got {} of {} other elements (sums: {} and {}), tolerance 0".format(
            wrong, x_expected.numel(), float(x_expected.sum()), float(x_got.sum())))
    return {"x.grad sums to": float(x_got.sum()), "y.grad is equal": torch.equal(y_got, y_expected)}


def control(start=0, total=False):
    """Not compiled."""
    return _compare(_sum_of_scattered, start, total)


def baseline(start=0, total=False):
    return _compare(torch.compile(_sum_of_scattered), start, total)


def assign_to_copy(start=0, total=False):
    """The slice of a copy is assigned to."""
    return _compare(torch.compile(_sum_of_assigned), start, total)


def concatenate(start=0, total=False):
    """The parts are concatenated."""
    return _compare(torch.compile(_sum_of_parts), start, total)


def aot_eager(start=0, total=False):
    return _compare(torch.compile(_sum_of_scattered, backend="aot_eager"), start, total)


def clone_after_scatter(start=0, total=False):
    """The copy changes nothing about the gradient that comes in."""
    return _compare(torch.compile(_sum_of_clone), start, total)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
