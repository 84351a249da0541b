"""pytorch-169253: what a compiled method appends to a list of its class is lost.

`forward` appends its input to a list that belongs to the class, and is called twice. The list must hold two entries.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch._dynamo

SIGNATURE = r"expected \d+ entries in the list, got \d+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _class_list():
    class Model(torch.nn.Module):
        items = []

        def forward(self, x):
            Model.items.append(x)
            return x * 2

    return Model(), Model.items


def _instance_list():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.items = []

        def forward(self, x):
            self.items.append(x)
            return x * 2

    model = Model()
    return model, model.items


def _through_self():
    class Model(torch.nn.Module):
        items = []

        def forward(self, x):
            self.items.append(x)
            return x * 2

    return Model(), Model.items


_ITEMS = []


def _module_list():
    class Model(torch.nn.Module):
        def forward(self, x):
            _ITEMS.append(x)
            return x * 2

    _ITEMS.clear()
    return Model(), _ITEMS


def _eager_helper():
    class Model(torch.nn.Module):
        items = []

        def forward(self, x):
            _keep(Model, x)
            return x * 2

    return Model(), Model.items


@torch._dynamo.disable
def _keep(model, x):
    model.items.append(x)


def _observe(made, compiled):
    model, items = made
    if compiled:
        model.forward = torch.compile(model.forward, backend="eager")
    sums = [float(model(torch.ones(2)).sum()) for _ in range(2)]
    if len(items) != 2:
        raise WrongResult("expected 2 entries in the list, got {}".format(len(items)))
    return {"entries": len(items), "sums": sums}


def control():
    return _observe(_class_list(), False)


def baseline():
    return _observe(_class_list(), True)


def instance_list():
    """Each object has its own list."""
    return _observe(_instance_list(), True)


def module_list():
    """The list belongs to the Python module."""
    return _observe(_module_list(), True)


def eager_helper():
    """A function that is not compiled appends."""
    return _observe(_eager_helper(), True)


def through_self():
    """The list of the class, reached as self.items."""
    return _observe(_through_self(), True)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
