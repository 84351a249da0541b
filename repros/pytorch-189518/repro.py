"""pytorch-189518: a compiled cumsum of a constant ignores its dtype.

The running count of ones of bool, asked for in bfloat16, must be bfloat16.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected dtype torch\.bfloat16, got torch\.int64"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect():
    return torch.ones((2, 4, 4), dtype=torch.bool).cumsum(1, dtype=torch.bfloat16)


def _cast_before():
    return torch.ones((2, 4, 4), dtype=torch.bool).to(torch.bfloat16).cumsum(1)


def _cast_after():
    return torch.ones((2, 4, 4), dtype=torch.bool).cumsum(1, dtype=torch.bfloat16).to(torch.bfloat16)


def _observe(function):
    result = function()
    if result.dtype != torch.bfloat16:
        raise WrongResult("expected dtype torch.bfloat16, got {}".format(result.dtype))
    return {"dtype": str(result.dtype), "column": result[0, :, 0].tolist()}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect))


def cast_before():
    """The constant has the dtype that is wanted."""
    return _observe(torch.compile(_cast_before))


def from_outside():
    """What is an argument is no constant."""
    count = torch.compile(lambda ones: ones.cumsum(1, dtype=torch.bfloat16))
    return _observe(lambda: count(torch.ones((2, 4, 4), dtype=torch.bool)))


def no_pattern_matcher():
    return _observe(torch.compile(_suspect, options={"pattern_matcher": False}))


def aot_eager():
    return _observe(torch.compile(_suspect, backend="aot_eager"))


def cast_after():
    """A cast to the dtype that the tracer believes it has is dropped."""
    return _observe(torch.compile(_cast_after))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
