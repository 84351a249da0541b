"""ao-2901: importing a torchao that was built beside another torch kills the process.

torchao 0.12.0 loads its C++ libraries at import, whatever torch it finds. The script imports it and quantises a small
layer.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import sys

import torch

SIGNATURE = r'in load_library\s+File "\S{0,300}torchao\S{0,300}__init__\.py"'


class WrongResult(Exception):
    """The import ended without an error, and what it is needed for does not work."""


def control():
    """torch alone."""
    return {"torch": torch.__version__, "sum": float(torch.ones(4).sum())}


def _quantised():
    import torchao
    from torchao.quantization import int8_weight_only, quantize_

    torch.manual_seed(0)
    model, x = torch.nn.Sequential(torch.nn.Linear(32, 32)), torch.randn(4, 32)
    expected = model(x)
    quantize_(model, int8_weight_only())
    apart = (model(x) - expected).abs().max().item()
    if apart > 0.05:
        raise WrongResult("expected the layer within 0.05 of itself, got {}".format(apart))
    return {"torchao": torchao.__version__, "apart": round(apart, 4)}


def baseline():
    return _quantised()


def block_import():
    """Whatever asks for torchao is told that there is none."""
    sys.modules["torchao"] = None
    try:
        return _quantised()
    except ImportError as failure:
        return {"refused": str(failure), "sum": float(torch.nn.Linear(4, 4)(torch.zeros(1, 4)).numel())}


def catch_exception():
    """An abort is no exception: nothing is caught."""
    try:
        return _quantised()
    except BaseException as failure:
        return {"caught": type(failure).__name__}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
