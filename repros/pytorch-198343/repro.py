"""pytorch-198343: compiled lerp with a weight of 0.5 or more takes the strides of `end`, and no view of it compiles.

`x` is contiguous and `end` is transposed. In eager mode `x.lerp_(end, 0.75)` leaves x contiguous, and x.view(-1) is
fine.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"Cannot view a tensor with shape"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _in_place(x, end, weight):
    x.lerp_(end, weight)
    return x.view(-1)


def _observe(function, weight):
    torch.manual_seed(0)
    x, end = torch.rand(4, 16, 16), torch.rand(4, 16, 16).transpose(-1, -2)
    expected = (x + weight * (end - x)).flatten()
    result = function(x.clone(), end, weight)
    apart = (result - expected).abs().max().item()
    if result.shape != (1024,) or apart > 1e-5:
        raise WrongResult("expected 1024 elements within 1e-05, got {} that are {} apart".format(result.numel(), apart))
    return {"elements": result.numel(), "sum": round(float(result.sum()), 3)}


def _compile(function, **options):
    return torch.compile(function, fullgraph=True, **options)


def control(weight=0.75):
    return _observe(_in_place, weight)


def baseline(weight=0.75):
    return _observe(_compile(_in_place), weight)


def contiguous_end(weight=0.75):
    """Both have the strides of x."""

    def function(x, end, weight):
        x.lerp_(end.contiguous(), weight)
        return x.view(-1)

    return _observe(_compile(function), weight)


def formula(weight=0.75):
    """x comes first, and gives its strides."""

    def function(x, end, weight):
        x.add_(end - x, alpha=weight)
        return x.view(-1)

    return _observe(_compile(function), weight)


def aot_eager(weight=0.75):
    """The decomposition is Inductor's own."""
    return _observe(_compile(_in_place, backend="aot_eager"), weight)


def view_first(weight=0.75):
    """The view is taken before the update, while x still has its own strides."""

    def function(x, end, weight):
        flat = x.view(-1)
        x.lerp_(end, weight)
        return flat

    return _observe(_compile(function), weight)


def reshape(weight=0.75):
    """While tracing x is contiguous, so that the graph holds a view all the same."""

    def function(x, end, weight):
        x.lerp_(end, weight)
        return x.reshape(-1)

    return _observe(_compile(function), weight)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
