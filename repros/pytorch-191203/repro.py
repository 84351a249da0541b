"""pytorch-191203: an attention whose scale is a tensor is replaced by one that takes floats only.

softmax(q @ k.T / scale + mask) @ v is a pattern that Inductor fuses into scaled_dot_product_attention. What is
compiled must be close to the same attention in float64.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch.nn.functional as F

SIGNATURE = r"scaled_dot_product_attention\(\) Expected a value of type 'Optional\[float\]' for argument 'scale' but"

_SCALE = 2.0


class WrongResult(Exception):
    """The code compiled, and computes something else than it should."""


def _attention(q, k, v, mask, scale):
    scores = q @ k.transpose(-2, -1) / scale
    return torch.softmax(scores + mask, dim=-1) @ v


def _scaled_query(q, k, v, mask, scale):
    scores = (q / scale) @ k.transpose(-2, -1)
    return torch.softmax(scores + mask, dim=-1) @ v


def _sdpa(q, k, v, mask, scale):
    return F.scaled_dot_product_attention(q / scale, k, v, attn_mask=mask, scale=1.0)


def _observe(function, scale):
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 2, 8, 8, generator=generator) for _ in range(3))
    mask = torch.triu(torch.full((8, 8), -1e9), diagonal=1)
    with torch.no_grad():
        got = function(q, k, v, mask, scale)
        double = (q.double(), k.double(), v.double(), mask.double())
        off = float((got - _attention(*double, _SCALE)).abs().max())
        off_default = float((got - _attention(*double, 8 ** 0.5)).abs().max())
    if off_default < 1e-4:
        raise WrongResult("expected attention scaled by 2.0, got it scaled by the default, the root of the head's size "
                          "(off by {}, tolerance 1e-4)".format(off))
    if not off < 1e-4:
        raise WrongResult("expected attention, got something that is {} off (tolerance 1e-4)".format(off))
    return {"off": off}


def control():
    return _observe(_attention, torch.tensor(_SCALE))


def baseline():
    return _observe(torch.compile(_attention, fullgraph=True), torch.tensor(_SCALE))


def float_scale():
    """What the fused attention takes."""
    return _observe(torch.compile(_attention, fullgraph=True), _SCALE)


def scaled_query():
    """The same numbers, divided before the product: no pattern has it so."""
    return _observe(torch.compile(_scaled_query, fullgraph=True), torch.tensor(_SCALE))


def sdpa():
    """The fused attention by name, with the tensor applied to the query."""
    return _observe(torch.compile(_sdpa, fullgraph=True), torch.tensor(_SCALE))


def no_pattern_matcher():
    compiled = torch.compile(_attention, fullgraph=True, options={"pattern_matcher": False})
    return _observe(compiled, torch.tensor(_SCALE))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
