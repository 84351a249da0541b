"""pytorch-185382: a compiled loop over optimizer steps with .item() updates the parameter wrongly.

Steps of Adam written out, each with a graph break where it reads the step's number, in a loop inside of what is
compiled. After six steps the parameter must be that of the same loop in float64.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the parameter of Adam in float64, got one that is"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _step(param, grad, first, second, count):
    count.add_(1)
    first.mul_(0.9).add_(grad, alpha=0.1)
    second.mul_(0.999).addcmul_(grad, grad, value=0.001)
    done = count.item()  # the graph breaks here
    size = 0.001 / (1 - 0.9 ** done)
    root = (second.sqrt() / (1 - 0.999 ** done) ** 0.5).add_(1e-8)
    param.addcdiv_(first, root, value=-size)


def _train(param, grad):
    first, second, count = torch.zeros_like(param), torch.zeros_like(param), torch.zeros(())
    for _ in range(6):
        _step(param, grad, first, second, count)
    return param


def _step_without_item(param, grad, first, second, count):
    count.add_(1)
    first.mul_(0.9).add_(grad, alpha=0.1)
    second.mul_(0.999).addcmul_(grad, grad, value=0.001)
    size = 0.001 / (1 - 0.9 ** count)
    root = (second.sqrt() / (1 - 0.999 ** count) ** 0.5).add_(1e-8)
    param.sub_(size * first / root)


def _train_without_item(param, grad):
    first, second, count = torch.zeros_like(param), torch.zeros_like(param), torch.zeros(())
    for _ in range(6):
        _step_without_item(param, grad, first, second, count)
    return param


def _looped(step):
    """The same loop outside of what is compiled."""

    def train(param, grad):
        first, second, count = torch.zeros_like(param), torch.zeros_like(param), torch.zeros(())
        for _ in range(6):
            step(param, grad, first, second, count)
        return param

    return train


def _observe(train):
    generator = torch.Generator().manual_seed(0)
    param, grad = torch.randn(32, generator=generator), torch.randn(32, generator=generator)
    with torch.no_grad():
        expected, got = _train(param.double(), grad.double()), train(param.clone(), grad)
    off = float((got - expected).abs().max())
    if not off < 1e-4:
        raise WrongResult("expected the parameter of Adam in float64, got one that is {:.3g} off "
                          "(tolerance 1e-4)".format(off))
    return {"first": got[:8].tolist(), "sum": float(got.double().sum())}


def control(loop=True):
    return _observe(_train)


def baseline(loop=True):
    return _observe(torch.compile(_train) if loop else _looped(torch.compile(_step)))


def no_item(loop=True):
    """The step's number stays a tensor: no graph break, and no number that a graph takes in."""
    compiled = torch.compile(_train_without_item) if loop else _looped(torch.compile(_step_without_item))
    return _observe(compiled)


def static(loop=True):
    """Each number is compiled in, and another one compiles anew."""
    return _observe(torch.compile(_train, dynamic=False) if loop else _looped(torch.compile(_step, dynamic=False)))


def aot_eager(loop=True):
    compiled = torch.compile(_train, backend="aot_eager") if loop else _looped(torch.compile(_step, backend="aot_eager"))
    return _observe(compiled)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
