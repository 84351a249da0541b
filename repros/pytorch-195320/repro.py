"""pytorch-195320: compiled attention whose key is permuted in one step is fused into an attention with another key.

Attention over x of shape (batch, tokens, heads, width), written out with matmul and softmax. The key goes to (batch,
heads, width, tokens) by one permute, which is right, or by two transposes. Compiled against plain torch.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch.nn.functional as F

SIGNATURE = r"expected the attention of plain torch, got values off by"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _by_hand(q, k, v):
    return torch.matmul((torch.matmul(q, k) * 0.25).softmax(dim=-1), v)


def _one_permute(q, k, v):
    return _by_hand(q.transpose(1, 2), k.permute(0, 2, 3, 1), v.transpose(1, 2))


def _two_transposes(q, k, v):
    return _by_hand(q.transpose(1, 2), k.transpose(1, 2).transpose(-2, -1), v.transpose(1, 2))


def _contiguous_key(q, k, v):
    return _by_hand(q.transpose(1, 2), k.permute(0, 2, 3, 1).contiguous(), v.transpose(1, 2))


def _ready_made(q, k, v):
    return F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), scale=0.25)


def _observe(function, tokens, train):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, tokens, 8, 16, requires_grad=train) for _ in range(3))
    got, expected = function(q, k, v), _one_permute(q, k, v)
    off = float((got - expected).abs().max())
    if off > 1e-3:
        raise WrongResult("expected the attention of plain torch, got values off by {:.3g} (tolerance 1e-3)"
                          .format(off))
    return {"shape": list(got.shape), "off": off}


def control(tokens=8, train=False):
    return _observe(_one_permute, tokens, train)


def baseline(tokens=8, train=False):
    return _observe(torch.compile(_one_permute), tokens, train)


def two_transposes(tokens=8, train=False):
    """The key is spelled as Inductor's own patterns spell it."""
    return _observe(torch.compile(_two_transposes), tokens, train)


def ready_made(tokens=8, train=False):
    """Nothing is left to be recognised."""
    return _observe(torch.compile(_ready_made), tokens, train)


def no_pattern_matcher(tokens=8, train=False):
    return _observe(torch.compile(_one_permute, options={"pattern_matcher": False}), tokens, train)


def aot_eager(tokens=8, train=False):
    return _observe(torch.compile(_one_permute, backend="aot_eager"), tokens, train)


def contiguous_key(tokens=8, train=False):
    return _observe(torch.compile(_contiguous_key), tokens, train)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
