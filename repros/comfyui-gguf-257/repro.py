"""comfyui-gguf-257: GGUF de-quantisation end to end, compiled for CUDA.

Packed blocks of Q4_K and Q5_K are de-quantised as ComfyUI-GGUF does it (the Q4_K part is the test that came with PyTorch's
fix), compiled and in eager mode. Of each block two bytes are viewed as the float16 scale; Inductor must not promise Triton
that such a view starts at a multiple of 16 bytes. A third format lays the float16 values out behind a header of 4 bytes.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"misaligned address|Expect the tensor to be \d+ bytes aligned\. Fail due to storage_offset=\d+ itemsize=\d+"

QK_K = 256
K_SCALE_SIZE = 12
ROWS, COLUMNS = 4608, 3072
HEADER = 4
TYPE_SIZE = {"Q4_K": 144, "Q5_K": 176}
TOLERANCE = 0.005  # of the largest element: some steps are rounded to float16 in eager mode and not in a fused kernel


class WrongResult(Exception):
    """The de-quantiser returned, and its numbers are wrong."""


def _view_as_half(x):
    return x.view(torch.float16)


def _half_from_bytes(x):
    pairs = x.reshape((x.shape[0], -1, 2)).to(torch.int16)
    return (pairs[:, :, 0] | pairs[:, :, 1] << 8).view(torch.float16)


def _split_block_dims(blocks, *args):
    n_max = blocks.shape[1]
    return torch.split(blocks, list(args) + [n_max - sum(args)], dim=1)


def _get_scale_min(scales):
    n_blocks = scales.shape[0]
    scales = scales.view(torch.uint8).reshape((n_blocks, 3, 4))
    d, m, m_d = torch.split(scales, scales.shape[-2] // 3, dim=-2)
    sc = torch.cat([d & 0x3F, (m_d & 0x0F) | ((d >> 2) & 0x30)], dim=-1)
    low = torch.cat([m & 0x3F, (m_d >> 4) | ((m >> 2) & 0x30)], dim=-1)
    return sc.reshape((n_blocks, 8)), low.reshape((n_blocks, 8))


def _shifts(values, device):
    return torch.tensor(values, device=device, dtype=torch.uint8).reshape((1, 1, len(values), 1))


def _q4_k(blocks, as_half):
    n_blocks = blocks.shape[0]
    d, dmin, scales, qs = _split_block_dims(blocks, 2, 2, K_SCALE_SIZE)
    d, dmin = as_half(d), as_half(dmin)
    sc, m = _get_scale_min(scales)
    d = (d * sc).reshape((n_blocks, -1, 1))
    dm = (dmin * m).reshape((n_blocks, -1, 1))
    qs = qs.reshape((n_blocks, -1, 1, 32)) >> _shifts([0, 4], d.device)
    qs = (qs & 0x0F).reshape((n_blocks, -1, 32))
    return (d * qs - dm).reshape((n_blocks, QK_K))


def _q5_k(blocks, as_half):
    n_blocks = blocks.shape[0]
    d, dmin, scales, qh, qs = _split_block_dims(blocks, 2, 2, K_SCALE_SIZE, QK_K // 8)
    d, dmin = as_half(d), as_half(dmin)
    sc, m = _get_scale_min(scales)
    d = (d * sc).reshape((n_blocks, -1, 1))
    dm = (dmin * m).reshape((n_blocks, -1, 1))
    ql = qs.reshape((n_blocks, -1, 1, 32)) >> _shifts([0, 4], d.device)
    qh = qh.reshape((n_blocks, -1, 1, 32)) >> _shifts([0, 1, 2, 3, 4, 5, 6, 7], d.device)
    q = (ql & 0x0F).reshape((n_blocks, -1, 32)) | ((qh & 0x01).reshape((n_blocks, -1, 32)) << 4)
    return (d * q - dm).reshape((n_blocks, QK_K))


def _dequantize(data, kind, as_half):
    """The tensor of ROWS x COLUMNS elements that lies packed in `data`."""
    if kind == "F16":
        return (as_half(data[HEADER:].unsqueeze(0)) + 1).reshape(ROWS, COLUMNS)
    rows = data.reshape((-1, data.shape[-1])).view(torch.uint8)
    n_blocks = rows.numel() // TYPE_SIZE[kind]
    blocks = rows.reshape((n_blocks, TYPE_SIZE[kind]))
    blocks = _q4_k(blocks, as_half) if kind == "Q4_K" else _q5_k(blocks, as_half)
    return blocks.reshape(ROWS, COLUMNS)


def _packed(kind):
    torch.manual_seed(0)
    if kind == "F16":
        return torch.cat([torch.zeros(HEADER, dtype=torch.uint8), torch.randn(ROWS * COLUMNS).half().view(torch.uint8)])
    n_blocks = ROWS * COLUMNS // QK_K
    blocks = torch.randint(0, 256, (n_blocks, TYPE_SIZE[kind]), dtype=torch.uint8)
    blocks[:, :4] = (torch.rand(n_blocks, 2) * 0.01).half().view(torch.uint8)  # d and dmin
    return blocks.reshape(ROWS, -1)


def _compare(how, kind, as_half=_view_as_half):
    data = _packed(kind).to("cuda")
    expected = _dequantize(data, kind, _view_as_half).double()
    got = how(_dequantize)(data, kind, as_half)
    torch.cuda.synchronize()
    got = got.double()
    worst = ((got - expected).abs().max() / expected.abs().max()).item()
    if not worst <= TOLERANCE:
        raise WrongResult("expected the tensor of eager mode, got a relative error of {}, tolerance {}".format(worst, TOLERANCE))
    return {
        "mean magnitude": got.abs().mean().item(),
        "largest": got.abs().max().item(),
        "relative error": worst,
    }


def control(kind="Q4_K"):
    """Not compiled."""
    return _compare(lambda function: function, kind)


def baseline(kind="Q4_K"):
    return _compare(torch.compile, kind)


def aot_eager(kind="Q4_K"):
    return _compare(lambda function: torch.compile(function, backend="aot_eager"), kind)


def half_from_bytes(kind="Q4_K"):
    """No view changes the size of an element."""
    return _compare(torch.compile, kind, _half_from_bytes)


def no_divisibility(kind="Q4_K"):
    """No kernel is told of any multiple of 16."""
    return _compare(lambda function: torch.compile(function, options={"triton.divisible_by_16": False}), kind)


def clone_before_compiled(kind="Q4_K"):
    """The values behind the header are copied to an aligned address outside of what is compiled."""
    if kind == "F16":
        rest = torch.compile(lambda values: (values.unsqueeze(0).view(torch.float16) + 1).reshape(ROWS, COLUMNS))
        return _compare(lambda function: lambda data, kind, as_half: rest(data[HEADER:].clone()), kind)
    compiled = torch.compile(_dequantize)
    return _compare(lambda function: lambda data, kind, as_half: compiled(data.clone(), kind, as_half), kind)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
