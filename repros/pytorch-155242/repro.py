"""pytorch-155242: an in-place update in a backward is lost once compiled where it does not depend on the gradient.

The backward of an autograd.Function adds ones to a tensor. They must be there after it.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected 1 after the backward, got \[0\.0, 0\.0\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Count(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, counter):
        ctx.counter = counter
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        ctx.counter.add_(torch.ones(2))
        return grad, None


def _suspect(x, counter):
    return _Count.apply(x, counter)


def _observe(function):
    x, counter = torch.ones(2, requires_grad=True), torch.zeros(2)
    out = function(x, counter)
    after_forward = counter.tolist()
    out.sum().backward()
    after_backward = counter.tolist()
    if after_forward != [0.0, 0.0]:
        raise WrongResult("expected 0 after the forward, got {}".format(after_forward))
    if after_backward != [1.0, 1.0]:
        raise WrongResult("expected 1 after the backward, got {}".format(after_backward))
    return {"after_forward": after_forward, "after_backward": after_backward, "grad": x.grad.tolist()}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, backend="aot_eager"))


def hook():
    """The update is made by a hook on the output, outside of what is compiled."""
    compiled = torch.compile(lambda x: x.clone(), backend="aot_eager")

    def counted(x, counter):
        out = compiled(x)
        out.register_hook(lambda grad: (counter.add_(torch.ones(2)), grad)[1])
        return out

    return _observe(counted)


def disabled():
    """Eager runs the Function, what stands around it is compiled."""
    apply = torch.compiler.disable(_Count.apply)
    return _observe(torch.compile(lambda x, counter: apply(x * 1.0, counter) * 1.0, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
