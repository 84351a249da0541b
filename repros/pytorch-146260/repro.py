"""pytorch-146260: the backward of compiled flex_attention finds no configuration at head dimension 128 on torch 2.6.

Attention with a causal document mask, forward and backward, in bfloat16. The gradients are compared with those of a
plain softmax in float32. The reporter's shapes, only fewer heads and a smaller batch.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"NoValidChoicesError: No choices to select[^V]*target: flex_attention_backward"

BATCH, HEADS, SEQUENCE, DOCUMENT = 2, 2, 512, 200


class WrongResult(Exception):
    """The attention ran, and its gradients are wrong."""


def _documents():
    """For each token the number of its document, as int64 of (batch, sequence)."""
    return (torch.arange(SEQUENCE, device="cuda") // DOCUMENT).expand(BATCH, SEQUENCE).contiguous()


def _allowed():
    """The mask as a tensor of (batch, 1, queries, keys)."""
    documents = _documents()
    causal = torch.ones(SEQUENCE, SEQUENCE, device="cuda", dtype=torch.bool).tril()
    return causal & (documents[:, None, :, None] == documents[:, None, None, :])


def _block_mask():
    from torch.nn.attention.flex_attention import create_block_mask

    documents = _documents()

    def causal_in_document(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (documents[b, q_idx] == documents[b, kv_idx])

    return create_block_mask(causal_in_document, BATCH, None, SEQUENCE, SEQUENCE, device="cuda")


def _softmax_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return scores.masked_fill(~_allowed(), float("-inf")).softmax(dim=-1) @ v


def _sdpa(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=_allowed())


def _flex(options=None, **compile_options):
    from torch.nn.attention.flex_attention import flex_attention

    compiled = torch.compile(flex_attention, **compile_options)
    return lambda q, k, v: compiled(q, k, v, block_mask=_block_mask(), kernel_options=options)


def _gradients(attention, values, upstream, dtype):
    q, k, v = (value.detach().to(dtype).requires_grad_() for value in values)
    attention(q, k, v).backward(upstream.to(dtype))
    torch.cuda.synchronize()
    return [tensor.grad.float() for tensor in (q, k, v)]


def _observe(attention, dtype, dim):
    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    size = (BATCH, HEADS, SEQUENCE, dim)
    values = [torch.randn(size, device="cuda").to(kind) for _ in range(3)]
    upstream = torch.randn(size, device="cuda").to(kind)
    got = _gradients(attention, values, upstream, kind)
    expected = _gradients(_softmax_attention, values, upstream, torch.float32)
    apart = [((g - e).norm() / e.norm()).item() for g, e in zip(got, expected)]
    if not max(apart) < 0.05:
        raise WrongResult(
            "expected the gradients of a plain softmax, got relative distances {}, tolerance 0.05".format(apart)
        )
    return {"distances": ["{:.1e}".format(one) for one in apart], "gpu": torch.cuda.get_device_name()}


def control(dtype="bfloat16", dim=128):
    """Not compiled, and no flex attention."""
    return _observe(_softmax_attention, dtype, dim)


def baseline(dtype="bfloat16", dim=128):
    return _observe(_flex(dynamic=False), dtype, dim)


def max_autotune(dtype="bfloat16", dim=128):
    """More configurations than the default one."""
    return _observe(_flex(dynamic=False, mode="max-autotune-no-cudagraphs"), dtype, dim)


def in_float32(dtype="bfloat16", dim=128):
    """float32 has a default configuration of 4 warps."""
    flex = _flex(dynamic=False)
    return _observe(lambda q, k, v: flex(q.float(), k.float(), v.float()).to(q.dtype), dtype, dim)


def sdpa_with_mask(dtype="bfloat16", dim=128):
    """The mask as a tensor, and no flex attention."""
    return _observe(torch.compile(_sdpa), dtype, dim)


def smaller_blocks(dtype="bfloat16", dim=128):
    """Smaller blocks do not change the number of warps."""
    options = {"BLOCK_M1": 32, "BLOCK_N1": 32, "BLOCK_M2": 32, "BLOCK_N2": 32}
    return _observe(_flex(options, dynamic=False), dtype, dim)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
