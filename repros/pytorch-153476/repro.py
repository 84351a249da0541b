"""pytorch-153476: einops.rearrange() in a function that is compiled as one graph.

Dynamo used to import einops' own registration when it started, and in 2.7.0 looks into einops instead. There it meets
a method of sets that it does not know.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import einops
import torch

SIGNATURE = r"symmetric_difference"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _transposed(x):
    return einops.rearrange(x, "b c -> c b")


def _observe(function):
    x = torch.arange(6.0).reshape(2, 3)
    result = function(x)
    if not torch.equal(result, x.t()):
        raise WrongResult("expected {}, got {}".format(x.t().tolist(), result.tolist()))
    return {"einops": einops.__version__, "first_row": result[0].tolist()}


def _compile(function, **options):
    return torch.compile(function, backend="eager", **options)


def control():
    return _observe(_transposed)


def baseline():
    return _observe(_compile(_transposed, fullgraph=True))


def register():
    """What einops offers for the purpose, called before anything is compiled."""
    from einops._torch_specific import allow_ops_in_compiled_graph

    allow_ops_in_compiled_graph()
    return _observe(_compile(_transposed, fullgraph=True))


def graph_break():
    """einops runs in eager mode."""
    return _observe(_compile(lambda x: _transposed(x) + 0))


def layer():
    """The layer of einops has its own, precomputed recipe."""
    from einops.layers.torch import Rearrange

    return _observe(_compile(Rearrange("b c -> c b"), fullgraph=True))


def permute():
    return _observe(_compile(lambda x: x.permute(1, 0), fullgraph=True))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
