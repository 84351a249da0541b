"""pytorch-194800: _adaptive_avg_pool3d_backward returns memory that is not its own where the gradient has fewer channels than the input.

An input of two channels and a gradient of one, as in the report. Shapes that fit must give the gradient; these must be refused.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected a refusal of the gradient with too few channels"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _backward(gradient, x):
    return torch.ops.aten._adaptive_avg_pool3d_backward(gradient, x)


def _good():
    got = _backward(torch.tensor([6.0, 4.0]).reshape(1, 2, 1, 1, 1), torch.ones(1, 2, 1, 1, 2)).flatten().tolist()
    if got != [3.0, 3.0, 2.0, 2.0]:
        raise WrongResult("expected the gradients 3, 3, 2 and 2, got {}".format(got))
    return {"gradients": got}


def _checked(gradient, x):
    if gradient.shape[:-3] != x.shape[:-3]:
        raise ValueError("The gradient must have the size of the input")
    return _backward(gradient, x)


def _autograd(gradient, x):
    y = torch.nn.functional.adaptive_avg_pool3d(x.requires_grad_(), gradient.shape[-3:])
    return torch.autograd.grad(y, x, gradient)[0]


def _observe(function):
    observed = dict(_good(), by_this=function(torch.ones(1, 2, 1, 1, 2), torch.ones(1, 2, 1, 1, 4)).flatten().tolist())
    if observed["by_this"] != [0.5] * 8:
        raise WrongResult("expected gradients of 0.5, got {}".format(observed["by_this"]))
    try:
        got = function(torch.ones(1, 1, 1, 1, 2), torch.ones(1, 2, 1, 1, 4))
    except (RuntimeError, ValueError) as refusal:
        if "size" not in str(refusal) and "shape" not in str(refusal):
            raise
        return dict(observed, refused=True)
    raise WrongResult("expected a refusal of the gradient with too few channels, got {}".format(got.flatten().tolist()))


def control():
    return dict(_good(), by_this=_backward(torch.ones(1, 2, 1, 1, 2), torch.ones(1, 2, 1, 1, 4)).flatten().tolist())


def baseline():
    return _observe(_backward)


def check_first():
    return _observe(_checked)


def by_autograd():
    return _observe(_autograd)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
