"""pytorch-145861: a model with flex_attention cannot be trained on the CPU once it is compiled.

Attention over small queries, keys and values that need gradients, forward and backward. The gradients must be those of
attention written out as two products and a softmax.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch.nn.functional as F

SIGNATURE = (r"torch\.compile on CPU only supports inference|FlexAttention does not support backward on CPU"
             r"|IndexError: tuple index out of range|expected the gradients [^x\n]*, got")


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _written_out(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    return torch.softmax(scores, -1) @ value


def _flex():
    from torch.nn.attention.flex_attention import flex_attention

    return flex_attention


def _gradients(attention):
    torch.manual_seed(0)
    inputs = [torch.randn(1, 2, 64, 32, requires_grad=True) for _ in range(3)]
    weights = torch.randn(1, 2, 64, 32)
    (attention(*inputs) * weights).sum().backward()
    return [entry.grad for entry in inputs]


def _observe(attention):
    expected, got = _gradients(_written_out), _gradients(attention)
    worst = max(float((a - b).abs().max()) for a, b in zip(expected, got))
    if worst > 1e-4:
        raise WrongResult("expected the gradients of plain attention, got others by {} (tolerance 1e-4)".format(worst))
    return {"worst": worst, "sum": float(got[0].abs().sum())}


def control():
    return _observe(_written_out)


def baseline():
    return _observe(torch.compile(_flex()))


def scaled_dot_product():
    return _observe(torch.compile(F.scaled_dot_product_attention))


def written_out():
    return _observe(torch.compile(_written_out))


def flex_uncompiled():
    """flex_attention without torch.compile around it."""
    return _observe(_flex())


def aot_eager():
    return _observe(torch.compile(_flex(), backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
