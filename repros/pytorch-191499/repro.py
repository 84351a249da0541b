"""pytorch-191499: Inductor's vectorised minimum of an int8 or uint8 tensor sees numbers that are not in the tensor.

A kernel tiled for float32 loads a part of a vector of bytes, and the rest of the vector is 0 or 1; the minimum of
larger numbers, and the maximum of negative ones, is taken over that rest too. Each case compares one reduction with its
known result.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected \w+ of torch\.u?int8 to be -?\d+, got -?\d+\b"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


_FUNCTIONS = {"min": torch.min, "max": torch.max, "argmin": torch.argmin, "argmax": torch.argmax}
_AT = 21  # where the extreme value stands


def _make(op, dtype, n):
    """Numbers of 3 to 101 with a 2 at the 22nd place (or the first), all of them negative for a maximum."""
    at = _AT if n > _AT else 1
    x = torch.arange(n, dtype=torch.int64) * 7 % 99 + 3
    x[at] = 2
    x = -x if op in ("max", "argmax") else x
    return x.to(getattr(torch, dtype)), (at if op.startswith("arg") else int(x[at]))


def _observe(how, op, dtype, n):
    x, expected = _make(op, dtype, n)
    got = int(how(_FUNCTIONS[op])(x))
    if got != expected:
        raise WrongResult("expected {} of {} to be {}, got {} (exact, tolerance 0)".format(op, x.dtype, expected, got))
    return {op: got, "vector_isa": torch.backends.cpu.get_cpu_capability()}


def _compiled(function):
    return torch.compile(function, fullgraph=True)


def control(op="min", dtype="uint8", n=64):
    return _observe(lambda function: function, op, dtype, n)


def baseline(op="min", dtype="uint8", n=64):
    return _observe(_compiled, op, dtype, n)


def cast_int32(op="min", dtype="uint8", n=64):
    """A vector of int32 is full."""
    return _observe(lambda function: _compiled(lambda x: function(x.to(torch.int32))), op, dtype, n)


def no_simd(op="min", dtype="uint8", n=64):
    return _observe(lambda function: torch.compile(function, fullgraph=True, options={"cpp.simdlen": 1}), op, dtype, n)


def aot_eager(op="min", dtype="uint8", n=64):
    return _observe(lambda function: torch.compile(function, backend="aot_eager", fullgraph=True), op, dtype, n)


def dynamic_true(op="min", dtype="uint8", n=64):
    """The length is symbolic, and the loop is vectorised all the same."""
    return _observe(lambda function: torch.compile(function, fullgraph=True, dynamic=True), op, dtype, n)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
