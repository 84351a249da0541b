"""pytorch-197087: argmin under dynamic shapes puts Python's ** into Inductor's C++, so that g++ refuses it.

argmin over a sum of tensors two of whose sizes are equal: Dynamo gives both one symbol, and the index becomes a power
of it.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"invalid type argument of unary .\*.|arg(min|max)_combine.{0,100}\*\*\d"


class WrongResult(Exception):
    """The code compiled, and computes something else than it should."""


def _lowest(a, b):
    return (a.unsqueeze(0) + b).argmin()


def _lowest_flat(a, b):
    return (a.unsqueeze(0) + b).flatten().argmin()


def _observe(function, height, width):
    torch.manual_seed(0)
    a, b = torch.randn(height, width), torch.randn(5, height, width)
    got, expected = int(function(a, b)), int((a.unsqueeze(0) + b).argmin())
    if got != expected:
        raise WrongResult("expected index {}, got {}".format(expected, got))
    return {"index": got}


def control(height=6, width=6):
    return _observe(_lowest, height, width)


def baseline(height=6, width=6):
    return _observe(torch.compile(_lowest, dynamic=True), height, width)


def dynamic_false(height=6, width=6):
    return _observe(torch.compile(_lowest, dynamic=False), height, width)


def mark_static(height=6, width=6):
    """One of the two equal sizes is a constant."""
    import torch._dynamo

    compiled = torch.compile(_lowest, dynamic=True)

    def call(a, b):
        torch._dynamo.mark_static(a, 1)
        torch._dynamo.mark_static(b, 2)
        return compiled(a, b)

    return _observe(call, height, width)


def aot_eager(height=6, width=6):
    return _observe(torch.compile(_lowest, dynamic=True, backend="aot_eager"), height, width)


def flattened(height=6, width=6):
    """argmin over one dimension."""
    return _observe(torch.compile(_lowest_flat, dynamic=True), height, width)


def no_simd(height=6, width=6):
    """The scalar loop prints the index in the same way."""
    return _observe(torch.compile(_lowest, dynamic=True, options={"cpp.simdlen": 0}), height, width)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
