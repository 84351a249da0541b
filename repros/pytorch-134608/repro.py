"""pytorch-134608: torch.nn.attention.sdpa_kernel inside a compiled function breaks the graph.

Attention with the backend chosen by the context manager, once in plain torch and once compiled. The script counts where
Dynamo leaves the graph: it must not.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
from torch.nn.attention import SDPBackend, sdpa_kernel
import torch
import torch._dynamo
from torch._dynamo.utils import counters

SIGNATURE = r""


def _attention(q):
    q = q * 2
    with sdpa_kernel(SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(q, q, q) + 1


def _without(q):
    q = q * 2
    return torch.nn.functional.scaled_dot_product_attention(q, q, q) + 1


def _observe(function, *arguments):
    """What the function returns, and at how many places Dynamo left the graph on the way."""
    before = sum(counters["graph_break"].values())
    result = function(*arguments)
    return {"graph_breaks": sum(counters["graph_break"].values()) - before, "result": result.detach().sum().item()}


def _query():
    return torch.linspace(0, 1, 2 * 4 * 8).view(1, 2, 4, 8)


def control():
    return _observe(_attention, _query())


def baseline():
    return _observe(torch.compile(_attention, backend="eager"), _query())


def around_the_call():
    """The backend is chosen by whoever calls the compiled function."""
    with sdpa_kernel(SDPBackend.MATH):
        return _observe(torch.compile(_without, backend="eager"), _query())


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
