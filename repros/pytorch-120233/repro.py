"""pytorch-120233: torch.compile refuses to run on Python 3.12.

A function of one addition is compiled and called.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"Dynamo is not supported on Python 3\.12\+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _increment(x):
    return x + 1


def _observe(function):
    result = function(torch.ones(2))
    if result.tolist() != [2.0, 2.0]:
        raise WrongResult("expected [2.0, 2.0], got {}".format(result.tolist()))
    return {"result": str(result.tolist())}


def control():
    return _observe(_increment)


def baseline():
    return _observe(torch.compile(_increment))


def eager_backend():
    """Dynamo refuses before any backend is asked."""
    return _observe(torch.compile(_increment, backend="eager"))


def disabled():
    """The check comes before the switch is looked at."""
    return _observe(torch.compile(_increment, disable=True))


def suppress_errors():
    """What fails is torch.compile itself, not what it compiles."""
    import torch._dynamo

    torch._dynamo.config.suppress_errors = True
    return _observe(torch.compile(_increment))


def where_supported():
    """Compiled where Dynamo says that it can, eager mode elsewhere."""
    import torch._dynamo

    return _observe(torch.compile(_increment) if torch._dynamo.is_dynamo_supported() else _increment)


def jit_trace():
    """TorchScript's tracer needs no Dynamo."""
    return _observe(torch.jit.trace(_increment, torch.zeros(2)))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
