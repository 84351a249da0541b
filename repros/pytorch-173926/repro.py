"""pytorch-173926: a view made under no_grad and returned cannot be compiled.

A layer's result is returned with a view of it, which was made where gradients are off.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"element \d+ of tensors does not require grad and does not have a grad_fn"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(model, x):
    out = model(x)
    with torch.no_grad():
        view = out.view(-1)
    return out.sum(), view


def _with_detach(model, x):
    out = model(x)
    return out.sum(), out.detach().view(-1)


def _with_copy(model, x):
    out = model(x)
    with torch.no_grad():
        view = out.view(-1).clone()
    return out.sum(), view


def _observe(function):
    model = torch.nn.Linear(2, 2)
    with torch.no_grad():
        model.weight.fill_(1.0)
        model.bias.fill_(0.0)
    loss, view = function(model, torch.ones(1, 2))
    loss.backward()
    if view.tolist() != [2.0, 2.0]:
        raise WrongResult("expected 2 and 2 in the view, got {}".format(view.tolist()))
    return {"loss": loss.item(), "view": view.tolist(), "gradient": model.weight.grad.tolist()}


def _compiled(function):
    return torch.compile(function, fullgraph=True, backend="aot_eager")


def control():
    return _observe(_suspect)


def baseline():
    return _observe(_compiled(_suspect))


def detached():
    """The view is taken from a tensor that is off the graph of autograd."""
    return _observe(_compiled(_with_detach))


def copied():
    """What is returned is no view of anything."""
    return _observe(_compiled(_with_copy))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
