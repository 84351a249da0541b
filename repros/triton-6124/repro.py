"""triton-6124: a transposed dot as the left operand of another dot is wrong on Hopper.

Two chained products of bfloat16 blocks are computed by a Triton kernel of one program and compared with float32 matmuls,
for four sizes of blocks.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import triton
import triton.language as tl

SIGNATURE = r"expected the product of float32 matmuls, got a relative error of \S+ \(rows, columns, width\)"

ENV = {"no_wgmma": {"DISABLE_MMA_V3": "1"}}

SIZES = ((64, 64, 64), (128, 64, 64), (64, 128, 64), (128, 128, 64))  # rows of q and d, rows of k, width of all
TOLERANCE = 0.02  # of the largest element; bfloat16 is good for 0.004


class WrongResult(Exception):
    """The kernel ran, and its numbers are wrong."""


@triton.jit
def _chained(q_ptr, k_ptr, d_ptr, o_ptr, Q: tl.constexpr, K: tl.constexpr, D: tl.constexpr):
    rows, columns, width = tl.arange(0, Q), tl.arange(0, K), tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + width[None, :])
    k = tl.load(k_ptr + columns[:, None] * D + width[None, :])
    d = tl.load(d_ptr + rows[:, None] * D + width[None, :])
    p = tl.dot(q, tl.trans(k))
    o = tl.dot(tl.trans(p.to(q.dtype)), d)
    tl.store(o_ptr + columns[:, None] * D + width[None, :], o)


@triton.jit
def _chained_transposed(q_ptr, k_ptr, d_ptr, o_ptr, Q: tl.constexpr, K: tl.constexpr, D: tl.constexpr):
    rows, columns, width = tl.arange(0, Q), tl.arange(0, K), tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + width[None, :])
    k = tl.load(k_ptr + columns[:, None] * D + width[None, :])
    d = tl.load(d_ptr + rows[:, None] * D + width[None, :])
    p_t = tl.dot(k, tl.trans(q))
    o = tl.dot(p_t.to(q.dtype), d)
    tl.store(o_ptr + columns[:, None] * D + width[None, :], o)


@triton.jit
def _first(q_ptr, k_ptr, p_ptr, Q: tl.constexpr, K: tl.constexpr, D: tl.constexpr):
    rows, columns, width = tl.arange(0, Q), tl.arange(0, K), tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + width[None, :])
    k = tl.load(k_ptr + columns[:, None] * D + width[None, :])
    tl.store(p_ptr + rows[:, None] * K + columns[None, :], tl.dot(q, tl.trans(k)).to(q.dtype))


@triton.jit
def _second(p_ptr, d_ptr, o_ptr, Q: tl.constexpr, K: tl.constexpr, D: tl.constexpr):
    rows, columns, width = tl.arange(0, Q), tl.arange(0, K), tl.arange(0, D)
    p = tl.load(p_ptr + rows[:, None] * K + columns[None, :])
    d = tl.load(d_ptr + rows[:, None] * D + width[None, :])
    tl.store(o_ptr + columns[:, None] * D + width[None, :], tl.dot(tl.trans(p), d))


def _compare(launch):
    """`launch(q, k, d, o, sizes)` fills o, for each of the sizes."""
    torch.manual_seed(0)
    worst, where = -1.0, None
    observed = {"triton": triton.__version__}
    for sizes in SIZES:
        Q, K, D = sizes
        q, k, d = (torch.randn(n, D, device="cuda", dtype=torch.bfloat16) for n in (Q, K, Q))
        p = torch.mm(q.float(), k.float().t()).to(torch.bfloat16)
        expected = torch.mm(p.float().t(), d.float())
        got = torch.full((K, D), float("nan"), device="cuda")
        launch(q, k, d, got, sizes)
        torch.cuda.synchronize()
        apart = (got - expected).abs().nan_to_num(nan=float("inf")).max().item() / expected.abs().max().item()
        observed["error at %d x %d x %d" % sizes] = apart
        print(sizes, "relative error", apart)
        if apart > worst:
            worst, where = apart, sizes
    if not worst <= TOLERANCE:
        raise WrongResult("expected the product of float32 matmuls, got a relative error of {} (rows, columns, width) = {}, "
                          "tolerance {}, Triton {}".format(worst, where, TOLERANCE, triton.__version__))
    return observed


def _launch_chained(q, k, d, o, sizes):
    _chained[(1,)](q, k, d, o, *sizes)


def control():
    """The same products by PyTorch, in bfloat16."""
    return _compare(lambda q, k, d, o, sizes: o.copy_(torch.mm(torch.mm(q, k.t()).t(), d)))


def baseline():
    return _compare(_launch_chained)


def compute_transposed():
    """The first product is computed transposed."""

    def launch(q, k, d, o, sizes):
        _chained_transposed[(1,)](q, k, d, o, *sizes)

    return _compare(launch)


def through_memory():
    """Two kernels, with the first product in memory between them."""

    def launch(q, k, d, o, sizes):
        p = torch.empty(sizes[0], sizes[1], device="cuda", dtype=q.dtype)
        _first[(1,)](q, k, p, *sizes)
        _second[(1,)](p, d, o, *sizes)

    return _compare(launch)


def no_wgmma():
    """ENV keeps Triton from Hopper's instructions."""
    return _compare(_launch_chained)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
