"""pytorch-183602: the compiled backward of torch.diagonal_scatter gives zero gradients.

The diagonal of a 5 x 5 matrix is replaced and all is summed. Every element of the matrix that was kept has the gradient
1, those on the diagonal 0: together 20.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the gradient to sum to \S+ \(exactly\), got "


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _scatter(x, diagonal):
    return torch.diagonal_scatter(x, diagonal, 0).sum()


def _squared(x, diagonal):
    """A gradient that is no expanded scalar: 2 * y."""
    return torch.diagonal_scatter(x, diagonal, 0).square().sum()


_CASES = {"sum": _scatter, "square": _squared}


def _where(x, diagonal):
    on_it = torch.eye(5, dtype=torch.bool)
    return torch.where(on_it, torch.diag_embed(diagonal), x).sum()


def _in_place(x, diagonal):
    y = x.clone()
    y.diagonal().copy_(diagonal)
    return y.sum()


def _dense_gradient(x, diagonal):
    y = torch.diagonal_scatter(x, diagonal, 0)
    return (y * torch.ones_like(y)).sum()


def _outside(compiled):
    def function(x, diagonal):
        return torch.diagonal_scatter(compiled(x), diagonal, 0).sum()
    return function


def _identity(x):
    return x * 1.0


def _observe(function):
    x = torch.full((5, 5), 0.5, requires_grad=True)
    diagonal = torch.ones(5, requires_grad=True)
    result = function(x, diagonal)
    result.backward()
    total = float(x.grad.sum())
    if total != 20.0:
        raise WrongResult("expected the gradient to sum to 20.0 (exactly), got {}".format(total))
    return {"result": float(result), "gradient": x.grad[0].tolist(), "of_diagonal": diagonal.grad.tolist()}


def control(case="sum"):
    return _observe(_CASES[case])


def baseline(case="sum"):
    return _observe(torch.compile(_CASES[case]))


def where(case="sum"):
    """The same matrix put together by torch.where."""
    return _observe(torch.compile(_where))


def in_place(case="sum"):
    """A clone whose diagonal is written."""
    return _observe(torch.compile(_in_place))


def dense_gradient(case="sum"):
    """Times a tensor of ones, so that the gradient might be no expanded scalar."""
    return _observe(torch.compile(_dense_gradient))


def aot_eager(case="sum"):
    return _observe(torch.compile(_CASES[case], backend="aot_eager"))


def outside(case="sum"):
    """diagonal_scatter itself is not compiled."""
    return _observe(_outside(torch.compile(_identity)))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
