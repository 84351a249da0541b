"""pytorch-151098: attention divided by a scale of its own is fused by Inductor and computed with the default scale.

softmax(q @ k.T / inv_scale + mask) @ v with heads of 64 and an inv_scale of the root of 1/8, compiled. It must be
close to the same attention in float64. The query is added, so that a graph that is fused aright has a C++ kernel too.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch
import torch.nn.functional as F

SIGNATURE = r"expected attention with its own scale, got it with the default scale"

_INV_SCALE = 1.0 / 8 ** 0.5


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _plain(q, k, v, mask, inv_scale=_INV_SCALE):
    scores = torch.matmul(q, k.transpose(-2, -1)).div(inv_scale) + mask
    return scores.softmax(dim=-1).matmul(v) + q


def _permuted(q, k, v, mask, inv_scale=_INV_SCALE):
    q, k, v = (x.permute(0, 2, 1, 3) for x in (q, k, v))
    return _plain(q, k, v, mask, inv_scale)


def _multiplied(q, k, v, mask):
    scores = torch.matmul(q, k.transpose(-2, -1)) * (1.0 / _INV_SCALE) + mask
    return scores.softmax(dim=-1).matmul(v) + q


def _permuted_multiplied(q, k, v, mask):
    q, k, v = (x.permute(0, 2, 1, 3) for x in (q, k, v))
    return _multiplied(q, k, v, mask)


def _ready_made(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0 / _INV_SCALE) + q


def _permuted_ready_made(q, k, v, mask):
    q, k, v = (x.permute(0, 2, 1, 3) for x in (q, k, v))
    return _ready_made(q, k, v, mask)


def _observe(function, permuted):
    generator = torch.Generator().manual_seed(0)
    q, k, v = (0.25 * torch.randn(1, 4, 8, 64, generator=generator) for _ in range(3))
    tokens = 4 if permuted else 8
    mask = torch.randn(1, 1, tokens, tokens, generator=generator)
    right = _permuted if permuted else _plain
    double = (q.double(), k.double(), v.double(), mask.double())
    with torch.no_grad():
        got = function(q, k, v, mask)
        off = float((got - right(*double)).abs().max())
        off_default = float((got - right(*double, 64 ** 0.5)).abs().max())
    if off_default < 1e-4:
        raise WrongResult("expected attention with its own scale, got it with the default scale "
                          "(off by {:.3g}, tolerance 1e-4)".format(off))
    if not off < 1e-4:
        raise WrongResult("expected attention, got something that is {:.3g} off (tolerance 1e-4)".format(off))
    return {"first": got.flatten()[:8].tolist(), "sum": float(got.double().sum())}


def control(permuted=True):
    return _observe(_permuted if permuted else _plain, permuted)


def baseline(permuted=True):
    return _observe(torch.compile(_permuted if permuted else _plain, fullgraph=True), permuted)


def multiply(permuted=True):
    """The same numbers in a form that no pattern has."""
    return _observe(torch.compile(_permuted_multiplied if permuted else _multiplied, fullgraph=True), permuted)


def ready_made(permuted=True):
    """Nothing is left to be recognised."""
    return _observe(torch.compile(_permuted_ready_made if permuted else _ready_made, fullgraph=True), permuted)


def no_pattern_matcher(permuted=True):
    compiled = torch.compile(_permuted if permuted else _plain, fullgraph=True, options={"pattern_matcher": False})
    return _observe(compiled, permuted)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
