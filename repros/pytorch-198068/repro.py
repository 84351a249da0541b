"""pytorch-198068: a custom operator writes through a view at the wrong place in a dynamic AOTInductor package.

An operator copies into buffer[1] of a buffer of two blocks. The exported program is compiled by AOTInductor for a
dynamic number of rows; the blocks that come back are compared with what must be in them.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected the blocks to sum to \[[^]x\n]*\], got"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _operator():
    @torch.library.custom_op("knowngood_198068::put", mutates_args=("target",))
    def put(target: torch.Tensor, source: torch.Tensor) -> None:
        torch.ops.aten.copy_.default(target, source)

    @put.register_fake
    def _(target, source):
        return None

    return torch.ops.knowngood_198068.put


class _IntoView(torch.nn.Module):
    """Hands the operator a view into the second block."""

    def __init__(self, put):
        super().__init__()
        self.put = put

    def forward(self, x):
        buffer = torch.zeros(2, x.shape[0], 4)
        self.put(buffer[1], x)
        return buffer


class _IntoFresh(_IntoView):
    """Hands the operator a tensor of its own, and copies that into the second block."""

    def forward(self, x):
        buffer, block = torch.zeros(2, x.shape[0], 4), torch.zeros_like(x)
        self.put(block, x)
        buffer[1] = block
        return buffer


class _Stacked(_IntoView):
    """Makes two blocks, and one buffer of them at the end."""

    def forward(self, x):
        blocks = [torch.zeros_like(x), torch.zeros_like(x)]
        self.put(blocks[1], x)
        return torch.stack(blocks)


def _check(function):
    got = function(torch.full((5, 4), 7.0)).sum((1, 2)).tolist()
    if got != [0.0, 140.0]:
        raise WrongResult("expected the blocks to sum to [0.0, 140.0], got {}".format(got))
    return {"sums": got}


def _package(model, dynamic):
    from torch._inductor import aoti_compile_and_package, aoti_load_package

    rows = torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(model, (torch.ones(5, 4),), dynamic_shapes=({0: rows},) if dynamic else None)
    return aoti_load_package(aoti_compile_and_package(program))


def control(dynamic=True):
    return _check(_IntoView(_operator()))


def baseline(dynamic=True):
    return _check(_package(_IntoView(_operator()), dynamic))


def static_shapes(dynamic=True):
    """The offset of the view is a number."""
    return _check(_package(_IntoView(_operator()), False))


def fresh_tensor(dynamic=True):
    """No view goes to the operator."""
    return _check(_package(_IntoFresh(_operator()), dynamic))


def stacked(dynamic=True):
    """No view goes to the operator."""
    return _check(_package(_Stacked(_operator()), dynamic))


def just_in_time(dynamic=True):
    """No package, and the same lowering."""
    return _check(torch.compile(_IntoView(_operator()), dynamic=dynamic))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
