"""pytorch-172747: a compiled GGUF de-quantiser of Q6_K blocks scales most elements by bytes of the next block.

Blocks of the formats BF16 and Q6_K go through one compiled wrapper, as in a GGUF loader. At the second format Dynamo makes
the size of a block symbolic; Inductor then no longer sees that the view of two bytes as one float16 is one element wide.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected -32 from every element of Q6_K, got \d+ of \d+ other ones"

QK_K = 256
COUNTS = (32, 4)  # blocks


class WrongResult(Exception):
    """The de-quantiser returned, and its numbers are wrong."""


def _bf16_blocks(n_blocks):
    data = torch.zeros((n_blocks, 2), dtype=torch.uint8)
    data[:, 0] = 0x80
    data[:, 1] = 0x3F  # 1.0
    return data.to("cuda")


def _q6_k_blocks(n_blocks):
    data = torch.zeros((n_blocks, 210), dtype=torch.uint8)
    data[:, 192:208] = 1  # the scales
    data[:, 208] = 0x00
    data[:, 209] = 0x3C  # 1.0 as float16
    return data.to("cuda")


def _bf16(blocks, dtype):
    return (blocks.view(torch.int16).to(torch.int32) << 16).view(torch.float32).to(dtype)


def _split_remainder(blocks, *args):
    """The last part is what is left, as in ComfyUI-GGUF."""
    return torch.split(blocks, list(args) + [blocks.shape[1] - sum(args)], dim=1)


def _split_known(blocks, *args):
    return torch.split(blocks, list(args) + [2], dim=1)


def _view_as_half(x):
    return x.view(torch.float16)


def _half_from_bytes(x):
    wide = x.to(torch.int16)
    return (wide[:, 0] | wide[:, 1] << 8).unsqueeze(1).view(torch.float16)


def _q6_k(blocks, dtype, split=_split_remainder, as_half=_view_as_half):
    n_blocks = blocks.shape[0]
    ql, qh, scales, d = split(blocks, QK_K // 2, QK_K // 4, QK_K // 16)
    scales = scales.view(torch.int8).to(dtype)
    d = as_half(d).to(dtype)
    d = (d * scales).reshape((n_blocks, QK_K // 16, 1))
    ql = ql.reshape((n_blocks, -1, 1, 64)) >> torch.tensor([0, 4], device=d.device, dtype=torch.uint8).reshape((1, 1, 2, 1))
    ql = (ql & 0x0F).reshape((n_blocks, -1, 32))
    shifts = torch.tensor([0, 2, 4, 6], device=d.device, dtype=torch.uint8)
    qh = (qh.reshape((n_blocks, -1, 1, 32)) >> shifts.reshape((1, 1, 4, 1)) & 0x03).reshape((n_blocks, -1, 32))
    q = (ql | (qh << 4)).to(torch.int8) - 32
    return (d * q.reshape((n_blocks, QK_K // 16, -1))).reshape((n_blocks, QK_K))


def _wrap(dequantize_blocks, how):
    """The two formats share this code, as they do in a loader."""

    def dequantize(data, type_size, dtype):
        n_blocks = data.numel() // type_size
        return dequantize_blocks(data.reshape((n_blocks, type_size)), dtype)

    return how(dequantize)


def _run(how, q6_k=_q6_k):
    bf16, q6_k = _wrap(_bf16, how), _wrap(q6_k, how)
    observed = {}
    for n_blocks in COUNTS:
        ones = bf16(_bf16_blocks(n_blocks).flatten(), 2, torch.float32)
        if not bool((ones == 1).all()):
            raise RuntimeError("the blocks of BF16 are not 1")
        got = q6_k(_q6_k_blocks(n_blocks).flatten(), 210, torch.float32)
        torch.cuda.synchronize()
        wrong = got.numel() - int((got == -32).sum())
        if wrong:
            raise WrongResult("expected -32 from every element of Q6_K, got {} of {} other ones with {} blocks, tolerance 0"
                              .format(wrong, got.numel(), n_blocks))
        observed["sum of %d blocks" % n_blocks] = float(got.double().sum())
    return observed


def control():
    """Not compiled."""
    return _run(lambda function: function)


def baseline():
    return _run(torch.compile)


def aot_eager():
    return _run(lambda function: torch.compile(function, backend="aot_eager"))


def dynamic_false():
    """Every shape is compiled anew, with its numbers."""
    return _run(lambda function: torch.compile(function, dynamic=False))


def half_from_bytes():
    """The two bytes are put together by integer arithmetic, and only then viewed."""
    return _run(torch.compile, lambda blocks, dtype: _q6_k(blocks, dtype, as_half=_half_from_bytes))


def known_sizes():
    """The sizes of all parts are numbers."""
    return _run(torch.compile, lambda blocks, dtype: _q6_k(blocks, dtype, split=_split_known))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
