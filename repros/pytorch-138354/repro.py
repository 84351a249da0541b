"""pytorch-138354: scaled_dot_product_attention returns another memory layout when cuDNN computes it.

Query, key and value are transposed views of (batch, sequence, heads, dim), as in most models. The output has to have
the values of a plain softmax and to lie in memory as the query does; torch 2.5.0 chooses cuDNN on Hopper, and it does
not.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import contextlib

import torch
import torch.nn.functional as F

SIGNATURE = r"expected an output laid out as the query, strides \([^)x\n]*\), got strides \("

BATCH, SEQUENCE, HEADS, DIM = 2, 128, 16, 64


class WrongResult(Exception):
    """The attention ran, and its output is wrong or lies elsewhere in memory than it should."""


class NotApplicable(Exception):
    """What the variant asks for does not exist here."""


def _inputs():
    torch.manual_seed(0)
    size = (BATCH, SEQUENCE, HEADS, DIM)
    return tuple(torch.randn(size, device="cuda", dtype=torch.bfloat16).transpose(1, 2) for _ in range(3))


def _attend(context):
    """The output beside its query, after its values were compared with those of float32."""
    q, k, v = _inputs()
    with context:
        out = F.scaled_dot_product_attention(q, k, v)
    scores = q.float() @ k.float().transpose(-2, -1) / DIM**0.5
    worst = (out.float() - scores.softmax(dim=-1) @ v.float()).abs().max().item()
    if not worst < 3e-2:
        raise WrongResult("expected the values of a plain softmax, got values {} apart, tolerance 0.03".format(worst))
    return q, out


def _observe(context):
    q, out = _attend(context)
    if out.stride() != q.stride():
        raise WrongResult(
            "expected an output laid out as the query, strides {}, got strides {}".format(q.stride(), out.stride())
        )
    merged = out.transpose(1, 2).view(BATCH, SEQUENCE, HEADS * DIM)
    return {"strides": out.stride(), "sum": float(merged.double().sum()), "gpu": torch.cuda.get_device_name()}


def _only(*names):
    """The backends of these names, as a context."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel([getattr(SDPBackend, name) for name in names])


def control(asked_for=False):
    """Without cuDNN."""
    return _observe(_only("FLASH_ATTENTION", "EFFICIENT_ATTENTION"))


def baseline(asked_for=False):
    if not asked_for:
        return _observe(contextlib.nullcontext())
    try:
        return _observe(_only("CUDNN_ATTENTION"))
    except RuntimeError as failure:
        if "No available kernel" in str(failure):
            raise NotApplicable("this build has no cuDNN attention for this GPU")
        raise


def cudnn_off(asked_for=False):
    """What the whole program may use, set once."""
    torch.backends.cuda.enable_cudnn_sdp(False)
    return _observe(contextlib.nullcontext())


def name_the_backends(asked_for=False):
    """cuDNN is not among those named."""
    return _observe(_only("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH"))


def reshape(asked_for=False):
    """The heads are merged whatever the layout is."""
    _, out = _attend(contextlib.nullcontext())
    merged = out.transpose(1, 2).reshape(BATCH, SEQUENCE, HEADS * DIM)
    return {"strides": out.stride(), "sum": float(merged.double().sum()), "gpu": torch.cuda.get_device_name()}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
