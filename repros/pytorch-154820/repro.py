"""pytorch-154820: in-place updates of forward and backward of an autograd.Function change places once compiled.

The report's function adds 1 to a tensor in its forward and 1 in its backward. It must be 1 after the forward and 2 after
the backward.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected 1 after the forward and 2 after the backward, got \[[02]\.0, [02]\.0\] and \[2\.0, 2\.0\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Count(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, counter, attach):
        counter.add_(1)
        ctx.attach = attach
        ctx.counter = counter
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        if ctx.attach:
            ctx.counter.add_(1 * (grad * 0 + 1))
        else:
            ctx.counter.add_(1)
        return grad, None, None


class _CountForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, counter):
        counter.add_(1)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def _suspect(x, counter, attach):
    return _Count.apply(x, counter, attach)


def _forward_alone(x, counter, attach):
    return _CountForward.apply(x, counter)


def _observe(function):
    x, counter = torch.ones(2, requires_grad=True), torch.zeros(2)
    out = function(x, counter)
    after_forward = counter.tolist()
    out.sum().backward()
    after_backward = counter.tolist()
    if (after_forward, after_backward) != ([1.0, 1.0], [2.0, 2.0]):
        raise WrongResult("expected 1 after the forward and 2 after the backward, got {} and {}".format(
            after_forward, after_backward))
    return {"after_forward": after_forward, "after_backward": after_backward, "grad": x.grad.tolist()}


def control(attach=False):
    return _observe(lambda x, counter: _suspect(x, counter, attach))


def baseline(attach=False):
    compiled = torch.compile(_suspect, backend="aot_eager")
    return _observe(lambda x, counter: compiled(x, counter, attach))


def hook(attach=False):
    """The update of the backward is made by a hook on the output, outside of what is compiled."""
    compiled = torch.compile(_forward_alone, backend="aot_eager")

    def counted(x, counter):
        out = compiled(x, counter, attach)
        out.register_hook(lambda grad: (counter.add_(1 * (grad * 0 + 1)) if attach else counter.add_(1), grad)[1])
        return out

    return _observe(counted)


def disabled(attach=False):
    """Eager runs the Function, what stands around it is compiled."""
    apply = torch.compiler.disable(_Count.apply)
    compiled = torch.compile(lambda x, counter: apply(x * 1.0, counter, attach) * 1.0, backend="aot_eager")
    return _observe(compiled)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
