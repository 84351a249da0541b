"""pytorch-161207: module.to(...) inside a compiled function breaks the graph, also where nothing has to move.

A compiled module calls `to` of itself with the device and dtype that it has. The script counts where Dynamo leaves the
graph: it must not.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch._dynamo
from torch._dynamo.utils import counters

SIGNATURE = r""


class _Offloaded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        torch.nn.init.constant_(self.linear.weight, 0.5)
        torch.nn.init.constant_(self.linear.bias, 1.0)

    def forward(self, x):
        result = self.linear(x)
        self.to(torch.float32)
        return result + 1


class _Asking(_Offloaded):
    def forward(self, x):
        result = self.linear(x)
        if self.linear.weight.dtype is not torch.float32:
            self.to(torch.float32)
        return result + 1


def _observe(function, *arguments):
    """What the function returns, and at how many places Dynamo left the graph on the way."""
    before = sum(counters["graph_break"].values())
    result = function(*arguments)
    return {"graph_breaks": sum(counters["graph_break"].values()) - before, "result": result.detach().sum().item()}


def control():
    return _observe(_Offloaded(), torch.ones(2, 8))


def baseline():
    return _observe(torch.compile(_Offloaded(), backend="eager"), torch.ones(2, 8))


def ask_first():
    """`to` is called only where something has to change."""
    return _observe(torch.compile(_Asking(), backend="eager"), torch.ones(2, 8))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
