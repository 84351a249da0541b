"""pytorch-193061: the gradient of a chunked scale/shift table is memory that nobody wrote.

Two modulated LayerNorms run forward and backward, in eager mode and compiled; the gradients of the table are compared.
Free GPU memory is filled with NaN before, so that what is never written is seen.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch.nn.functional as F

SIGNATURE = r"expected the table's gradient of eager mode, got \d+ of \d+ rows wrong"

ENV = {"mix_order_off": {"TORCHINDUCTOR_MIX_ORDER_REDUCTION": "0"}}

WIDTH = 1024
TOLERANCE = 0.01  # of a row's largest element


class WrongResult(Exception):
    """The backward pass ended without an error and with a wrong gradient."""


def _modulated(x, s1, b1, s2, b2):
    h = F.layer_norm(x, (WIDTH,)) * (1 + s1) + b1
    return F.layer_norm(h, (WIDTH,)) * (1 + s2) + b2


def _chunked(x, table):
    return _modulated(x, *table.chunk(4, dim=1))


def _unbound(x, table):
    return _modulated(x, *table.unbind(1))


def _cloned(x, table):
    return _modulated(x, *[part.clone() for part in table.chunk(4, dim=1)])


def _poison():
    """Leave blocks of the table's size in the allocator that hold NaN."""
    blocks = [torch.full((1, 4, WIDTH), float("nan"), device="cuda") for _ in range(256)]
    torch.cuda.synchronize()
    del blocks


def _table_gradient(function, x, table, weight):
    _poison()
    (function(x, table) * weight).sum().backward()
    torch.cuda.synchronize()
    gradient, table.grad = table.grad.clone(), None
    return gradient


def _compare(how, tokens):
    """`how` makes of nothing a function of x and the table."""
    torch.manual_seed(0)
    x = torch.randn(1, tokens, WIDTH, device="cuda")
    weight = torch.randn_like(x)
    table = (torch.randn(1, 4, WIDTH, device="cuda") * 0.1).requires_grad_()
    expected = _table_gradient(_chunked, x, table, weight)
    got = _table_gradient(how(), x, table, weight)
    observed = {}
    wrong = 0
    for row, name in enumerate(("s1", "b1", "s2", "b2")):
        apart = (got[0, row] - expected[0, row]).abs().nan_to_num(nan=float("inf")).max().item()
        largest = expected[0, row].abs().max().item()
        observed[name] = "{} apart, largest {}".format(apart, largest)
        print(name, observed[name])
        wrong += not apart <= TOLERANCE * largest
    if wrong:
        raise WrongResult("expected the table's gradient of eager mode, got {} of 4 rows wrong, tolerance {} of a row's "
                          "largest: {}".format(wrong, TOLERANCE, observed))
    return observed


def control(tokens=32768):
    """Not compiled: unbound rows against chunked ones, in eager mode."""
    return _compare(lambda: _unbound, tokens)


def baseline(tokens=32768):
    return _compare(lambda: torch.compile(_chunked), tokens)


def mix_order_off(tokens=32768):
    """ENV keeps reductions over different dimensions in kernels of their own."""
    return _compare(lambda: torch.compile(_chunked), tokens)


def unbind(tokens=32768):
    """The table's rows are unbound, not chunked."""
    return _compare(lambda: torch.compile(_unbound), tokens)


def separate_parameters(tokens=32768):
    """The compiled function gets four tensors; what they are slices of is eager mode's business."""
    compiled = torch.compile(_modulated)
    return _compare(lambda: lambda x, table: compiled(x, *[part.clone() for part in table.chunk(4, dim=1)]), tokens)


def clone_chunks(tokens=32768):
    """The chunks are cloned in the compiled function."""
    return _compare(lambda: torch.compile(_cloned), tokens)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
