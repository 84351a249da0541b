"""pytorch-151290: Inductor's C++ for a compiled create_block_mask declares one array twice, so that g++ refuses it.

A reduction under a vectorised loop gets a buffer for its scalar tail and, where Inductor also splits it over threads, a
buffer of the same name for the partial sums. Each case computes something small and compares it with plain torch.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch.nn.functional as F

SIGNATURE = r"(conflicting declaration|redeclaration of|redefinition of) .{0,80}tmp_acc\d+_arr"

ENV = {"big_chunk": {"TORCHINDUCTOR_CPP_MIN_CHUNK_SIZE": "100000000"}}


class WrongResult(Exception):
    """The code compiled, and computes something else than it should."""


def _causal(batch, head, query, key):
    return query >= key


def _mask(how, queries, keys, block):
    """Which blocks of a causal mask hold anything: as create_block_mask says, and counted plainly."""
    from torch.nn.attention.flex_attention import create_block_mask  # seconds that the other cases do without

    create = how(create_block_mask)
    got = create(_causal, 1, 1, queries, keys, device="cpu", BLOCK_SIZE=block).to_dense()[0, 0].bool()
    allowed = torch.arange(queries)[:, None] >= torch.arange(keys)[None, :]
    expected = allowed.view(queries // block, block, keys // block, block).any(3).any(1)
    return got, expected, torch.equal(got, expected)


def _block_1024(how):
    return _mask(how, 1024, 2048, 1024)


def _block_128(how):
    return _mask(how, 1024, 2048, 128)


def _upstream(how):
    """The call of the report."""
    return _mask(how, 512, 512, 128)


def _count_positive(x):
    return (x > 0).sum(0)


def _plain_sum(how):
    """The same fault in one line, without flex attention."""
    x = torch.randn(16384, 6)
    got, expected = how(_count_positive)(x), torch.count_nonzero(x > 0, dim=0)
    return got, expected, torch.equal(got, expected)


class _Twin(torch.nn.Module):
    """The model of pytorch/pytorch#151523, where the array is one of floats."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 16, (1, 7), (2, 1))

    def forward(self, x, weights):
        x = F.hardshrink(self.conv(x), lambd=0)
        return torch.mv(weights, x.view(x.size(0), -1)[0])


def _twin_mv(how):
    model, x, weights = _Twin().eval(), torch.randn(2, 3, 127, 255), torch.randn(10, 254976)
    got = how(model)(x, weights)
    expected = model.double()(x.double(), weights.double())
    return got, expected, torch.allclose(got.double(), expected, atol=0.1, rtol=1e-3)


_CASES = {"block_1024": _block_1024, "block_128": _block_128, "upstream": _upstream,
          "plain_sum": _plain_sum, "twin_mv": _twin_mv}


def _run(case, threads, how):
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    with torch.no_grad():
        got, expected, same = _CASES[case](how)
    if not same:
        raise WrongResult("expected {}, got {}".format(expected.tolist(), got.tolist()))
    return {"case": case, "elements": got.numel(), "sum": float(got.double().sum()),
            "threads": torch.get_num_threads(), "vector_isa": torch.backends.cpu.get_cpu_capability()}


def control(case="block_1024", threads=2):
    """Not compiled."""
    return _run(case, threads, lambda function: function)


def baseline(case="block_1024", threads=2):
    return _run(case, threads, torch.compile)


def eager_mask(case="block_1024", threads=2):
    """create_block_mask as it is, beside a compiled flex_attention."""
    return _run(case, threads, lambda function: function)


def aot_eager(case="block_1024", threads=2):
    return _run(case, threads, lambda function: torch.compile(function, backend="aot_eager"))


def cpp_threads_1(case="block_1024", threads=2):
    """Inductor splits nothing in this graph."""
    return _run(case, threads, lambda function: torch.compile(function, options={"cpp.threads": 1}))


def one_thread(case="block_1024", threads=2):
    """The whole process has one thread; `threads` is what it would have had."""
    return _run(case, 1, torch.compile)


def big_chunk(case="block_1024", threads=2):
    """ENV sets how much work is worth a thread to more than there ever is."""
    return _run(case, threads, torch.compile)


def no_simd(case="block_1024", threads=2):
    """Without vectors there is no tail."""
    return _run(case, threads, lambda function: torch.compile(function, options={"cpp.simdlen": 0}))


def dynamic_true(case="block_1024", threads=2):
    """Inductor does not know the sizes, and so does not split the reduction."""
    return _run(case, threads, lambda function: torch.compile(function, dynamic=True))


def block_128(case="block_1024", threads=2):
    """The default BLOCK_SIZE, whatever `case` has: the outer loops are long enough to be split themselves."""
    return _run("block_128", threads, torch.compile)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
