"""pytorch-146151: compiled flex_attention is noted with the query's head dimension instead of the value's.

Attention whose values are wider or narrower than its queries is merged to (batch, sequence, heads * width), as every
model does it. What comes out is compared with a plain softmax; Dynamo of torch 2.6 cannot trace the reshape.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"shape '\[\d+, \d+, \d+\]' is invalid for input of size \d+"

BATCH, HEADS, SEQUENCE, QK_DIM = 4, 8, 256, 64


class WrongResult(Exception):
    """The attention ran, and its output is wrong."""


class NotApplicable(Exception):
    """This release has no such attention, compiled or not."""


def _attention(q, k, v, scale=None):
    from torch.nn.attention.flex_attention import flex_attention

    return flex_attention(q, k, v, scale=scale)


def _merge(out, width):
    """(batch, heads, sequence, width) to (batch, sequence, heads * width)."""
    return out.transpose(1, 2).reshape(BATCH, SEQUENCE, HEADS * width)


def _model(q, k, v):
    return _merge(_attention(q, k, v), v.shape[-1])


def _padded_model(q, k, v):
    wide = max(q.shape[-1], v.shape[-1])
    q_wide, k_wide, v_wide = (torch.nn.functional.pad(t, (0, wide - t.shape[-1])) for t in (q, k, v))
    out = _attention(q_wide, k_wide, v_wide, scale=q.shape[-1] ** -0.5)
    return _merge(out[..., : v.shape[-1]], v.shape[-1])


def _split_model(q, k, v):
    out = torch.cat([_attention(q, k, piece) for piece in v.split(q.shape[-1], dim=-1)], dim=-1)
    return _merge(out, v.shape[-1])


def _observe(model, v_dim, device):
    torch.manual_seed(0)
    q, k, v = (
        torch.randn(BATCH, HEADS, SEQUENCE, width, device=device, dtype=torch.bfloat16)
        for width in (QK_DIM, QK_DIM, v_dim)
    )
    try:
        got = model(q, k, v)
    except Exception as failure:
        if "NYI: Currently value embedding dimension" in str(failure):
            raise NotApplicable("this release refuses values wider than queries, compiled or not")
        raise
    scores = q.float() @ k.float().transpose(-2, -1) / QK_DIM**0.5
    expected = _merge(scores.softmax(dim=-1) @ v.float(), v_dim)
    if got.shape != expected.shape:
        raise WrongResult("expected shape {}, got {}".format(tuple(expected.shape), tuple(got.shape)))
    worst = (got.float() - expected).abs().max().item()
    if not worst < 3e-2:
        raise WrongResult("expected the values of a plain softmax, got values {} apart, tolerance 0.03".format(worst))
    return {"shape": tuple(got.shape), "sum": float(got.double().sum())}


def control(v_dim=128, device="cuda"):
    """Not compiled."""
    return _observe(_model, v_dim, device)


def baseline(v_dim=128, device="cuda"):
    return _observe(torch.compile(_model), v_dim, device)


def flex_alone(v_dim=128, device="cuda"):
    """The attention is a graph of its own, which nothing follows; the reshape is in another one."""
    alone = torch.compile(_attention)

    @torch.compiler.disable(recursive=False)
    def attend(q, k, v):
        return alone(q, k, v)

    return _observe(torch.compile(lambda q, k, v: _merge(attend(q, k, v), v.shape[-1])), v_dim, device)


def pad_query(v_dim=128, device="cuda"):
    """One head dimension for all three."""
    return _observe(torch.compile(_padded_model), v_dim, device)


def split_value(v_dim=128, device="cuda"):
    """Pieces of the value as wide as the query."""
    return _observe(torch.compile(_split_model), v_dim, device)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
