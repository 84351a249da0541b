"""pytorch-139257: a custom operator that gives a parameter new storage by set_() cannot be compiled.

An empty parameter gets the data of an intermediate, as lazy loading and sharded parameters do it. What the module then
computes is held against the same module in eager mode: nine numbers, and a parameter that holds three times as much.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expand: the requested shape has too few dimensions"

_library = torch.library.Library("exchange", "DEF")
for _name in ("set_data", "copy_data"):
    _library.define(_name + "(Tensor(a!) param, Tensor new_data) -> ()")


def _set_data(param, new_data):
    param.set_(new_data)


def _copy_data(param, new_data):
    param.copy_(new_data)


_library.impl("set_data", _set_data, "CPU")
_library.impl("set_data", _set_data, "Meta")
_library.impl("copy_data", _copy_data, "CPU")
_library.impl("copy_data", lambda param, new_data: None, "Meta")


class WrongResult(Exception):
    """The module ran, and computes something else than it should."""


class _Module(torch.nn.Module):
    """`put` is how the parameter gets its data, `size` what it is made with."""

    def __init__(self, put, size=(0,)):
        super().__init__()
        self.param = torch.nn.Parameter(torch.zeros(size))
        self.put = put

    def forward(self, x):
        x = x * 3
        y = self.param
        self.put(y, x)
        return y / 3


def _set(param, new_data):
    torch.ops.exchange.set_data(param, new_data)


def _copy(param, new_data):
    torch.ops.exchange.copy_data(param, new_data)


def _observe(module, how):
    with torch.no_grad():
        result = how(module)(torch.arange(9.0).view(3, 3))
    got, param = result.flatten().tolist(), module.param.detach().flatten().tolist()
    if got != [float(i) for i in range(9)] or param != [3.0 * i for i in range(9)]:
        raise WrongResult("expected the numbers 0 to 8 and three times as much in the parameter, got {} and {}".format(got, param))
    return {"result": got, "param": param}


def _compiled(module):
    return torch.compile(module, backend="aot_eager")


def control():
    return _observe(_Module(_set), lambda module: module)


def baseline():
    return _observe(_Module(_set), _compiled)


def disable():
    """The operator is called between two graphs."""
    return _observe(_Module(torch.compiler.disable(_set)), _compiled)


def full_size():
    """The parameter has its size from the start, and the operator copies."""
    return _observe(_Module(_copy, (3, 3)), _compiled)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
