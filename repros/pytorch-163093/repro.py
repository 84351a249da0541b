"""pytorch-163093: ReduceLROnPlateau puts a float in the place of a tensor learning rate: a compiled step is compiled anew.

Adam has its learning rate as a tensor, so that a compiled step need not be compiled for each of its values. The metric never
improves, and ReduceLROnPlateau lowers the rate after each of six steps. The script counts how often the step is compiled.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch._dynamo
from torch._dynamo.utils import counters

SIGNATURE = r""

STEPS = 6


def _train(compiled, keep=lambda group, rate: None):
    """Six steps; keep(group, rate) may mend what the scheduler has done to the group."""
    graphs = []

    def counting(graph, inputs):
        graphs.append(len(inputs))
        return graph.forward

    parameter = torch.nn.Parameter(torch.full((4,), 3.0))
    rate = torch.tensor(0.5)
    optimizer = torch.optim.Adam([parameter], lr=rate)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)

    def _step():
        optimizer.step()

    step = torch.compile(_step, backend=counting) if compiled else _step
    scheduler.step(1.0)
    for _ in range(STEPS):
        parameter.grad = torch.ones(4)
        step()
        scheduler.step(1.0)
        keep(optimizer.param_groups[0], rate)
    return {
        "graphs": len(graphs),
        "rate": float(optimizer.param_groups[0]["lr"]),
        "parameter": parameter.detach().mean().item(),
    }


def control():
    return _train(compiled=False)


def baseline():
    return _train(compiled=True)


def put_the_tensor_back():
    """The tensor takes over the value, and takes its place again."""
    def keep(group, rate):
        if group["lr"] is not rate:
            group["lr"] = rate.fill_(group["lr"])

    return _train(compiled=True, keep=keep)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
