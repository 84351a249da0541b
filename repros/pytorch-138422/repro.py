"""pytorch-138422: vmap over torch.autograd.grad fails on the output of a compiled function.

The Jacobian of t ** 2 at (1, ..., 5) is computed row by row in one batch; it must be the diagonal matrix of 2 t.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = (r"call a compiled backward function within vmap/grad/vjp"
             r"|Cannot access (data pointer|storage) of (Tensor|BatchedTensorImpl)")


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _square(t):
    return t ** 2


def _x():
    return torch.arange(1.0, 6.0, requires_grad=True)


def _checked(jacobian, x):
    difference = float((jacobian - torch.diag(2 * x.detach())).abs().max())
    if difference > 1e-6:
        raise WrongResult("expected the diagonal matrix of 2 x, got another, by {} (tolerance 1e-6)".format(difference))
    return {"diagonal": torch.diagonal(jacobian).tolist(), "difference": difference}


def _batched(function):
    x = _x()
    y = function(x)
    jacobian = torch.vmap(lambda v: torch.autograd.grad(y, x, v, retain_graph=True)[0])(torch.eye(5))
    return _checked(jacobian, x)


def control():
    return _batched(_square)


def baseline():
    return _batched(torch.compile(_square))


def row_by_row():
    x = _x()
    y = torch.compile(_square)(x)
    rows = [torch.autograd.grad(y, x, v, retain_graph=True)[0] for v in torch.eye(5)]
    return _checked(torch.stack(rows), x)


def compiled_jacrev():
    x = _x()
    return _checked(torch.compile(torch.func.jacrev(_square))(x.detach()), x)


def is_grads_batched():
    x = _x()
    y = torch.compile(_square)(x)
    return _checked(torch.autograd.grad(y, x, torch.eye(5), is_grads_batched=True)[0], x)


def batched_aot_eager():
    """What is_grads_batched batches, without Inductor's own graph around it."""
    x = _x()
    y = torch.compile(_square, backend="aot_eager")(x)
    return _checked(torch.autograd.grad(y, x, torch.eye(5), is_grads_batched=True)[0], x)


def aot_eager():
    return _batched(torch.compile(_square, backend="aot_eager"))


def eager_backend():
    """Dynamo alone: autograd records plain operators."""
    return _batched(torch.compile(_square, backend="eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
