"""pytorch-117265: a full_backward_pre_hook registered after the first compiled call is ignored.

An identity layer is compiled and called once; then a hook that doubles the gradient is registered on it. The gradient of
the next call must be 2 everywhere.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected the gradient \[[^]x\n]*\], got \[[^]x\n]*\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _double(module, grad_output):
    return tuple(grad * 2 for grad in grad_output)


def _layer():
    layer = torch.nn.Linear(3, 3, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(3))
    return layer


def _gradient(function):
    x = torch.ones(3, requires_grad=True)
    function(x).sum().backward()
    return x.grad.tolist()


def _observe(function, before, hook):
    """The gradient before and after `hook` is called; `before` is what it must be at first."""
    first = _gradient(function)
    if first != before:
        raise RuntimeError("the gradient is {} before anything is changed".format(first))
    hook()
    second = _gradient(function)
    if second != [2.0, 2.0, 2.0]:
        raise WrongResult("expected the gradient [2.0, 2.0, 2.0], got {} (tolerance 0)".format(second))
    return {"before": first, "after": second}


def _late(compiler):
    layer = _layer()
    return _observe(compiler(layer), [1.0] * 3, lambda: layer.register_full_backward_pre_hook(_double))


def _compiled(layer):
    @torch.compile(backend="aot_eager", fullgraph=True)
    def function(x):
        return layer(x)

    return function


def _compiled_with_breaks(layer):
    """Dynamo may leave the layer to Python, and compile the rest."""
    @torch.compile(backend="aot_eager")
    def function(x):
        return layer(x) * 1.0

    return function


def control():
    return _late(lambda layer: layer)


def baseline():
    return _late(_compiled)


def hook_first():
    """The hook is there before the first compiled call."""
    layer = _layer()
    layer.register_full_backward_pre_hook(_double)
    return _observe(_compiled_with_breaks(layer), [2.0] * 3, lambda: None)


def reset_after():
    """Everything compiled is thrown away after the hook is registered."""
    layer = _layer()

    def hook():
        layer.register_full_backward_pre_hook(_double)
        torch._dynamo.reset()

    return _observe(_compiled_with_breaks(layer), [1.0] * 3, hook)


def hook_guards():
    torch._dynamo.config.skip_nnmodule_hook_guards = False
    return _late(_compiled_with_breaks)


def outside():
    """The hook is registered on a module that is called outside of what is compiled."""
    layer = _layer()

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.function = _compiled(layer)

        def forward(self, x):
            return self.function(x)

    outer = Outer()
    return _observe(outer, [1.0] * 3, lambda: outer.register_full_backward_pre_hook(_double))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
