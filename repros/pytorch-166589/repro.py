"""pytorch-166589: error_on_graph_break(True) lets a graph break pass where something was traced before it.

The block forbids graph breaks, and holds one. Compiling must raise Unsupported; the script sees whether it does. First
a function without a break is compiled, so that there is something that was.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch._dynamo

SIGNATURE = r"expected Unsupported from the graph break, got the result \[[^]x\n]*\]"


class WrongResult(Exception):
    """The computation ended without the error that it must end with."""


def _block_later(x):
    x = x + 1
    x = x + 1
    with torch._dynamo.error_on_graph_break(True):
        torch._dynamo.graph_break()
    return x + 1


def _block_first(x):
    with torch._dynamo.error_on_graph_break(True):
        torch._dynamo.graph_break()
    return x + 1


def _no_block(x):
    x = x + 1
    x = x + 1
    torch._dynamo.graph_break()
    return x + 1


def _add_one(x):
    return x + 1


_CASES = {"later": _block_later, "first": _block_first}


def _must_refuse(function, **options):
    compiled = float(torch.compile(_add_one, backend="eager")(torch.ones(1)))
    try:
        got = torch.compile(function, backend="eager", **options)(torch.ones(3)).tolist()
    except torch._dynamo.exc.Unsupported as refusal:
        return {"refused": type(refusal).__name__, "compiled": compiled}
    raise WrongResult("expected Unsupported from the graph break, got the result {}".format(got))


def control(case="later"):
    """A graph break that nothing forbids: the function runs in parts and returns."""
    return {"got": torch.compile(_no_block, backend="eager")(torch.ones(3)).tolist()}


def baseline(case="later"):
    return _must_refuse(_CASES[case])


def fullgraph(case="later"):
    """The whole function forbids graph breaks."""
    return _must_refuse(_CASES[case], fullgraph=True)


def block_in_callee(case="later"):
    """The block is alone in a function of its own, which the compiled one calls."""
    return _must_refuse(lambda x: _block_first(x + 1))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
