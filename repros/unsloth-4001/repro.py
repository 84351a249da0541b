"""unsloth-4001: Inductor of torch 2.9 looks for cluster_dims where Triton 3.6.0 has none.

A function is compiled that launches a user's Triton kernel, or one without; its result is compared with eager mode.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import triton
import triton.language as tl

SIGNATURE = r"'KernelMetadata' object has no attribute 'cluster_dims"

SIZE = 1024


class WrongResult(Exception):
    """The kernels ran, and their numbers are wrong."""


@triton.jit
def _double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2.0, mask=at < n)


def _with_user_kernel(x):
    x = x.sin() + 1
    y = torch.empty_like(x)
    _double[(SIZE // 256,)](x, y, SIZE, BLOCK=256)
    return y - 1


def _with_own_kernel(x):
    return (x.sin() + 1) * 2 - 1


def _compare(how, user_kernel):
    torch.manual_seed(0)
    x = torch.randn(SIZE, device="cuda")
    expected = (x.sin() + 1) * 2 - 1
    got = how(_with_user_kernel if user_kernel else _with_own_kernel)(x)
    torch.cuda.synchronize()
    apart = (got - expected).abs().max().item()
    if not apart <= 1e-5:
        raise WrongResult("expected (sin(x) + 1) * 2 - 1, got values {} apart, tolerance 1e-5".format(apart))
    return {"apart": apart, "triton": triton.__version__, "torch": torch.__version__}


def control(user_kernel=True):
    """Not compiled."""
    return _compare(lambda function: function, user_kernel)


def baseline(user_kernel=True):
    return _compare(torch.compile, user_kernel)


def give_attributes(user_kernel=True):
    """Patch Triton in this process."""
    from triton.compiler.compiler import CompiledKernel

    original = CompiledKernel.__init__

    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        if not hasattr(self.metadata, "cluster_dims"):
            self.num_ctas = getattr(self.metadata, "num_ctas", 1)
            self.cluster_dims = (1, 1, 1)

    CompiledKernel.__init__ = init
    return _compare(torch.compile, user_kernel)


def aot_eager(user_kernel=True):
    return _compare(lambda function: torch.compile(function, backend="aot_eager"), user_kernel)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
