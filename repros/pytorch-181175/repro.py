"""pytorch-181175: torch.func.grad through a convolution cannot be compiled with dynamic shapes.

The gradient of the sum of a ConvTranspose2d with respect to its input, in eager mode and compiled with dynamic=True.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"Cannot call numel\(\) on tensor with symbolic sizes/strides"

_LAYERS = {"transposed": torch.nn.ConvTranspose2d, "plain": torch.nn.Conv2d}


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _layer(kind):
    layer = _LAYERS[kind](2, 2, 3)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(36.0).reshape(2, 2, 3, 3) / 36)
    return layer


def _expected(layer, x):
    x = x.clone().requires_grad_()
    layer(x).sum().backward()
    layer.zero_grad()
    return x.grad


def _observe(function, layer):
    x = torch.linspace(-1, 1, 32).reshape(1, 2, 4, 4)
    expected, got = _expected(layer, x), function(x)
    if not torch.allclose(got, expected, rtol=1e-4, atol=1e-5):
        raise WrongResult("expected the gradient {}, got {}, tolerance 1e-4".format(expected.tolist(), got.tolist()))
    return {"sum": got.sum().item(), "first": got[0, 0, 0].tolist(), "last": got[0, 1, 3].tolist()}


def _gradient(layer):
    def _suspect(x):
        return torch.func.grad(lambda y: layer(y).sum())(x)

    return _suspect


def control(kind="transposed"):
    layer = _layer(kind)
    return _observe(_gradient(layer), layer)


def baseline(kind="transposed"):
    layer = _layer(kind)
    return _observe(torch.compile(_gradient(layer), backend="aot_eager", dynamic=True), layer)


def static_shapes(kind="transposed"):
    """Sizes are numbers."""
    layer = _layer(kind)
    return _observe(torch.compile(_gradient(layer), backend="aot_eager", dynamic=False), layer)


def frozen(kind="transposed"):
    """Without parameters that require gradients nothing is differentiated twice."""
    layer = _layer(kind)
    frozen = _layer(kind).requires_grad_(False)
    return _observe(torch.compile(_gradient(frozen), backend="aot_eager", dynamic=True), layer)


def no_grad(kind="transposed"):
    """torch.func.grad differentiates inside of no_grad too; what comes out is not differentiated again."""
    layer = _layer(kind)
    compiled = torch.compile(_gradient(layer), backend="aot_eager", dynamic=True)

    def _guarded(x):
        with torch.no_grad():
            return compiled(x)

    return _observe(_guarded, layer)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
