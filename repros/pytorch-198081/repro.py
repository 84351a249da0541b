"""pytorch-198081: torch.any of a uint8 tensor is a bool tensor once compiled with Inductor.

The dtype of `any`, and the uint8 arithmetic behind it, are compared with what eager mode documents: uint8 stays
uint8.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected torch\.uint8 \S+, got torch\.\w+ \S+"


class WrongResult(Exception):
    """The computation ended without an error, in another dtype than eager's."""


def _any(x):
    return torch.any(x)


def _any_of_rows(x):
    return x.any(0)


def _any_then_arithmetic(x):
    return torch.any(x) * 200 + 100  # 300 wraps to 44 in uint8


CASES = {  # what is computed, and what uint8 gives
    "arithmetic": (_any_then_arithmetic, [44]),
    "any": (_any, [1]),
    "any_dim": (_any_of_rows, [0, 1]),
}


def _observe(function, expected):
    x = torch.tensor([[0, 3], [0, 0]], dtype=torch.uint8)
    result = function(x)
    values = [int(value) for value in result.flatten().tolist()]
    if result.dtype != torch.uint8 or values != expected:
        told = ",".join(map(str, expected)), result.dtype, ",".join(map(str, values))
        raise WrongResult("expected torch.uint8 {}, got {} {} (exact)".format(*told))
    return {"dtype": str(result.dtype), "values": values}


def control(case="arithmetic"):
    return _observe(*CASES[case])


def baseline(case="arithmetic"):
    function, expected = CASES[case]
    return _observe(torch.compile(function, fullgraph=True), expected)


def compare_first(case="arithmetic"):
    """A bool tensor goes into any(), so that a real cast to uint8 stays in the graph."""

    def function(x):
        return (x != 0).any().to(torch.uint8) * 200 + 100

    return _observe(torch.compile(function, fullgraph=True), [44])


def largest(case="arithmetic"):
    """amax() keeps the dtype of its input."""

    def function(x):
        return torch.clamp(x.amax(), max=1) * 200 + 100

    return _observe(torch.compile(function, fullgraph=True), [44])


def aot_eager(case="arithmetic"):
    function, expected = CASES[case]
    return _observe(torch.compile(function, fullgraph=True, backend="aot_eager"), expected)


def cast_after(case="arithmetic"):
    """While tracing, the result is uint8 already, and the cast is left out."""

    def function(x):
        return torch.any(x).to(torch.uint8) * 200 + 100

    return _observe(torch.compile(function, fullgraph=True), [44])


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
