"""pytorch-170398: a user's Triton kernel whose name begins with two underscores is not found in Inductor's own module.

A kernel doubles a vector inside a compiled function. Since torch 2.9 the call stands inside a class, where Python
reads the name __twice_0 as _Runner__twice_0.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import triton
import triton.language as tl

SIGNATURE = r"NameError: name '_Runner__\w+' is not defined"

SIZE, BLOCK = 1000, 256


class WrongResult(Exception):
    """The kernel ran, and its numbers are wrong."""


@triton.jit
def __twice(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n) * 2, at < n)


@triton.jit
def __twice__(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n) * 2, at < n)


@triton.jit
def _twice(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n) * 2, at < n)


_same_kernel = __twice


def _launch(x):
    y = torch.empty_like(x)
    __twice[(triton.cdiv(SIZE, BLOCK),)](x, y, SIZE, BLOCK)
    return y


def _launch_renamed(x):
    y = torch.empty_like(x)
    _twice[(triton.cdiv(SIZE, BLOCK),)](x, y, SIZE, BLOCK)
    return y


def _launch_trailing(x):
    y = torch.empty_like(x)
    __twice__[(triton.cdiv(SIZE, BLOCK),)](x, y, SIZE, BLOCK)
    return y


def _launch_alias(x):
    y = torch.empty_like(x)
    _same_kernel[(triton.cdiv(SIZE, BLOCK),)](x, y, SIZE, BLOCK)
    return y


def _observe(launch, how):
    torch.manual_seed(0)
    x = torch.randn(SIZE, device="cuda")
    got = how(lambda t: launch(t + 1) - 1)(x)  # what surrounds the kernel gives Inductor something to write, too
    torch.cuda.synchronize()
    expected = (x + 1) * 2 - 1
    if not torch.allclose(got, expected, atol=1e-6):
        worst = (got - expected).abs().max().item()
        raise WrongResult("expected (x + 1) * 2 - 1, got values {} apart, tolerance 1e-6".format(worst))
    return {"sum": float(got.double().sum()), "gpu": torch.cuda.get_device_name()}


def control():
    """Not compiled: Triton alone."""
    return _observe(_launch, lambda function: function)


def baseline():
    return _observe(_launch, torch.compile)


def renamed():
    """One leading underscore is never mangled."""
    return _observe(_launch_renamed, torch.compile)


def trailing_underscores():
    """Inductor adds a number behind the trailing underscores."""
    return _observe(_launch_trailing, torch.compile)


def alias():
    """The kernel is the same function with the same name."""
    return _observe(_launch_alias, torch.compile)


def no_partition():
    """The calls stand outside of any class."""
    return _observe(_launch, lambda function: torch.compile(function, options={"graph_partition": False}))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
