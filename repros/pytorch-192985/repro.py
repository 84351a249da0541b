"""pytorch-192985: under torch.compile, torch.func.jvp does not call the jvp that an autograd.Function defines.

The function is a sine whose jvp says 0, so that the tangent shows which rule was used: 0 is the function's own, cos(x)
that of the inlined sine.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import math

import torch

SIGNATURE = r"expected tangents 0 by the function's own jvp, got \[[^]x\n]*\]"

_X = (0.1, 0.7, 2.0)


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Sine(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.sin(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def jvp(ctx, dx):
        return torch.zeros_like(dx)


def _tangent(x):
    return torch.func.jvp(_Sine.apply, (x,), (torch.ones_like(x),))[1]


def _scaled(x):
    """The tangent inside of something that is compiled."""
    return _tangent(x) * 1.0


def _observe(function):
    got = function(torch.tensor(_X)).tolist()
    if any(value != 0 for value in got):
        raise WrongResult("expected tangents 0 by the function's own jvp, got {} (tolerance 0); "
                          "cos(x) is {}".format(got, [math.cos(x) for x in _X]))
    return {"tangents": str(got)}


def control():
    return _observe(_scaled)


def baseline(backend="aot_eager"):
    return _observe(torch.compile(_scaled, backend=backend))


def disabled(backend="aot_eager"):
    """Dynamo does not look into the call of torch.func.jvp."""
    tangent = torch.compiler.disable(_tangent)
    return _observe(torch.compile(lambda x: tangent(x) * 1.0, backend=backend))


def allowed_in_graph(backend="aot_eager"):
    """The whole jvp is one call in Dynamo's graph, and AOTAutograd traces it as eager runs it."""
    torch.compiler.allow_in_graph(_tangent)
    return _observe(torch.compile(_scaled, backend=backend, fullgraph=True))


def apply_disabled(backend="aot_eager"):
    """Only the function itself is kept from Dynamo."""
    apply = torch.compiler.disable(_Sine.apply)

    def scaled(x):
        return torch.func.jvp(apply, (x,), (torch.ones_like(x),))[1] * 1.0

    return _observe(torch.compile(scaled, backend=backend))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
