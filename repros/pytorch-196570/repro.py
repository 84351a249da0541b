"""pytorch-196570: Inductor's outer-loop fusion on the CPU dies with KeyError: 'buf1' for a mask written in place.

A mask of -10000 has all of its entries set to 0 by index, is added to the scores, and goes through softmax. The
compiled result is compared with plain torch.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"KeyError: '(buf|op)\d+'"


class WrongResult(Exception):
    """The code compiled, and computes something else than it should."""


def _by_index(x):
    mask = torch.full((8, 8), -10000.0)
    index = torch.arange(8)
    mask[index.unsqueeze(0), index.unsqueeze(1)] = 0
    return torch.softmax(x + mask, dim=-1)


def _by_where(x):
    index = torch.arange(8)
    keep = (index.unsqueeze(0) >= 0) & (index.unsqueeze(1) >= 0)
    return torch.softmax(x + torch.where(keep, 0.0, -10000.0), dim=-1)


def _out_of_place(x):
    index = torch.arange(8)
    place = (index.unsqueeze(0), index.unsqueeze(1))
    mask = torch.full((8, 8), -10000.0).index_put(place, torch.zeros(()))
    return torch.softmax(x + mask, dim=-1)


def _observe(function):
    torch.manual_seed(0)
    x = torch.randn(8, 8)
    off = float((function(x) - torch.softmax(x, dim=-1)).abs().max())
    if off > 1e-5:
        raise WrongResult("expected the softmax of plain torch, got values off by {:.3g} (tolerance 1e-5)".format(off))
    return {"elements": x.numel(), "off": off}


def control():
    return _observe(_by_index)


def baseline():
    return _observe(torch.compile(_by_index))


def where_mask():
    return _observe(torch.compile(_by_where))


def mask_outside():
    """The mask is made by plain torch, and handed to the compiled function."""
    compiled = torch.compile(lambda x, mask: torch.softmax(x + mask, dim=-1))

    def call(x):
        mask = torch.full((8, 8), -10000.0)
        index = torch.arange(8)
        mask[index.unsqueeze(0), index.unsqueeze(1)] = 0
        return compiled(x, mask)

    return _observe(call)


def aot_eager():
    return _observe(torch.compile(_by_index, backend="aot_eager"))


def no_simd():
    """Whether the loops are vectorised has no part in it."""
    return _observe(torch.compile(_by_index, options={"cpp.simdlen": 0}))


def out_of_place():
    """The functional form of the same write."""
    return _observe(torch.compile(_out_of_place))


def no_fusion():
    """Every node of the graph is a kernel of its own."""
    return _observe(torch.compile(_by_index, options={"max_fusion_size": 1}))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
