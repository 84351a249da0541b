"""pytorch-177630: a compiled batched matmul multiplies float16 by float32, which plain torch refuses.

Each arm first multiplies two float32 tensors of ones, to which 1 is added (9), and then a float16 by a float32
tensor, which must be refused.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import re

import torch

SIGNATURE = r"expected float16 times float32 to be refused, got a torch\.float\d+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _product(a, b):
    return torch.matmul(a, b) + 1


def _checked(a, b):
    if a.dtype != b.dtype:
        raise TypeError("expected scalar type of both to be the same")
    return torch.matmul(a, b) + 1


def _observe(function):
    a, b = torch.ones(2, 4, 8, 8), torch.ones(2, 4, 8, 64)
    plain = function(a, b)
    if plain.dtype != torch.float32 or plain.unique().tolist() != [9.0]:
        raise WrongResult("expected float32 of 9, got {} of {}".format(plain.dtype, plain.unique().tolist()))
    try:
        got = function(a.half(), b)
    except Exception as refusal:
        if not re.search(r"scalar type|same dtype", str(refusal)):
            raise
        return {"product": float(plain.mean()), "refused": "the two dtypes"}
    raise WrongResult("expected float16 times float32 to be refused, got a {} with {}".format(got.dtype, float(got.mean())))


def control():
    return _observe(_product)


def baseline():
    return _observe(torch.compile(_product, fullgraph=True))


def check_before():
    """The caller looks at the dtypes before the compiled function sees them."""
    compiled = torch.compile(_product, fullgraph=True)

    def guarded(a, b):
        if a.dtype != b.dtype:
            raise TypeError("expected scalar type of both to be the same")
        return compiled(a, b)

    return _observe(guarded)


def check_inside():
    """Dtypes are known while the graph is traced."""
    return _observe(torch.compile(_checked))


def aot_eager():
    """The kernel of plain torch runs, and refuses."""
    return _observe(torch.compile(_product, fullgraph=True, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
