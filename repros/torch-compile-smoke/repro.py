"""torch-compile-smoke: torch.compile refuses to run on a Python that this release of torch does not know yet.

A function of a product, a sum and a rectifier is compiled with the default backend and called.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"Dynamo (?:is )?not supported on Python 3\.\d+\+|torch\.compile is not supported on Python 3\.\d+\+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _layer(x, weight):
    return torch.relu(x @ weight + 1)


def _observe(function):
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4) - 6
    weight = torch.eye(4)
    result = function(x, weight)
    expected = (x + 1).clamp(min=0)
    if not torch.equal(result, expected):
        raise WrongResult("expected {}, got {}".format(expected.tolist(), result.tolist()))
    return {"sum": float(result.sum()), "shape": str(list(result.shape))}


def control():
    return _observe(_layer)


def baseline():
    return _observe(torch.compile(_layer))


def where_supported():
    """Compiled where Dynamo says that it can, eager mode elsewhere."""
    import torch._dynamo

    return _observe(torch.compile(_layer) if torch._dynamo.is_dynamo_supported() else _layer)


def jit_trace():
    """TorchScript's tracer needs no Dynamo."""
    return _observe(torch.jit.trace(_layer, (torch.zeros(3, 4), torch.eye(4))))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
