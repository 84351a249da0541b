"""pytorch-196678: cuDNN attention with a mask gives NaN gradients of the queries for lengths of 64 modulo 128.

Every score is near -120, so that each row's logsumexp is far below -88.7. The gradients of masked attention are computed
by cuDNN and, as the control, by the math backend.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import math

import torch
import torch.nn.functional as F

SIGNATURE = r"expected finite gradients of the queries, got \d+ of \d+ elements that are not"

WIDTH = 64


class WrongResult(Exception):
    """The backward pass ended without an error and with NaN."""


def _only(backend):
    """A context in which one backend alone may be used; `default` leaves the choice to the release."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    if backend == "default":
        import contextlib
        return contextlib.nullcontext()
    return sdpa_kernel({"cudnn": SDPBackend.CUDNN_ATTENTION, "math": SDPBackend.MATH}[backend])


def _masked(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def _observe(attention, length, backend, causal):
    torch.manual_seed(0)
    q = torch.randn(1, 1, length, WIDTH, device="cuda", dtype=torch.bfloat16) * 0.1
    k = torch.randn(1, 1, length, WIDTH, device="cuda", dtype=torch.bfloat16) * 0.1
    v = torch.randn(1, 1, length, WIDTH, device="cuda", dtype=torch.bfloat16)
    q[..., 0], k[..., 0] = 1.0, -120 * math.sqrt(WIDTH)
    for tensor in (q, k, v):
        tensor.requires_grad_()
    mask = torch.ones(length, length, dtype=torch.bool, device="cuda")
    mask = (mask.tril() if causal else mask)[None, None]
    with _only(backend):
        out = attention(q, k, v, mask)
        out.backward(torch.randn_like(out))
    torch.cuda.synchronize()
    bad = {name: int((~torch.isfinite(tensor.grad)).sum()) for name, tensor in (("q", q), ("k", k), ("v", v))}
    print("elements that are not finite:", bad, "cuDNN", torch.backends.cudnn.version())
    if not torch.isfinite(out).all():
        raise RuntimeError("the forward result is not finite either")
    if bad["q"]:
        raise WrongResult("expected finite gradients of the queries, got {} of {} elements that are not "
                          "(keys {}, values {})".format(bad["q"], q.numel(), bad["k"], bad["v"]))
    return {"not finite": bad, "largest": q.grad.float().abs().max().item(), "cudnn": torch.backends.cudnn.version()}


def control(length=704, backend="cudnn", causal=True):
    """The math backend."""
    return _observe(_masked, length, "math", causal)


def baseline(length=704, backend="cudnn", causal=True):
    return _observe(_masked, length, backend, causal)


def cudnn_off(length=704, backend="cudnn", causal=True):
    """What is left chooses for itself."""
    torch.backends.cuda.enable_cudnn_sdp(False)
    return _observe(_masked, length, "default", causal)


def is_causal(length=704, backend="cudnn", causal=True):
    """No mask is passed."""
    return _observe(lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, is_causal=True), length, backend, causal)


def pad_to_128(length=704, backend="cudnn", causal=True):
    """Zeros up to the next multiple of 128, with the new keys shut out."""

    def padded(q, k, v, mask):
        more = -length % 128
        q, k, v = (F.pad(tensor, (0, 0, 0, more)) for tensor in (q, k, v))
        mask = F.pad(mask, (0, more, 0, more), value=False)
        if more:
            mask[..., -more:, :1] = True
        return _masked(q, k, v, mask)[..., :length, :]

    return _observe(padded, length, backend, causal)


def float_mask(length=704, backend="cudnn", causal=True):
    """Zeros and minus infinities."""

    def with_floats(q, k, v, mask):
        return _masked(q, k, v, torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, float("-inf")))

    return _observe(with_floats, length, backend, causal)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
