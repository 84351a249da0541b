"""pytorch-142479: a compiled transposed convolution takes a float16 input with float32 weights.

The weight is 2, the bias 1. Each arm first asks for a float32 input of 3, which must come out as 7, and then for the
same in float16, which must be refused.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import re

import torch

SIGNATURE = r"expected a float16 input with float32 weights to be refused, got a torch\.float\d+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convts = torch.nn.ConvTranspose1d(1, 1, kernel_size=1)
        with torch.no_grad():
            self.convts.weight.fill_(2.0)
            self.convts.bias.fill_(1.0)

    def forward(self, x):
        return torch.relu(self.convts(x))


class _Checked(_Model):
    def forward(self, x):
        if x.dtype != self.convts.weight.dtype:
            raise TypeError("the input should be the same scalar type as the weight")
        return torch.relu(self.convts(x))


def _observe(function):
    x = torch.full((1, 1, 1), 3.0)
    plain = function(x)
    if plain.dtype != torch.float32 or float(plain) != 7.0:
        raise WrongResult("expected 7 in float32, got {} in {}".format(float(plain), plain.dtype))
    try:
        got = function(x.half())
    except Exception as refusal:
        if not re.search(r"scalar type|should be the same", str(refusal)):
            raise
        return {"plain": float(plain), "refused": "the two dtypes"}
    raise WrongResult("expected a float16 input with float32 weights to be refused, got a {} with {}".format(got.dtype, float(got)))


def control():
    return _observe(_Model())


def baseline():
    return _observe(torch.compile(_Model()))


def check_before():
    """The caller looks at the dtypes before the compiled model sees them."""
    model = _Model()
    compiled = torch.compile(model)

    def guarded(x):
        if x.dtype != model.convts.weight.dtype:
            raise TypeError("the input should be the same scalar type as the weight")
        return compiled(x)

    return _observe(guarded)


def check_inside():
    """Dtypes are known while the graph is traced."""
    return _observe(torch.compile(_Checked()))


def aot_eager():
    """The kernel of plain torch runs, and refuses."""
    return _observe(torch.compile(_Model(), backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
