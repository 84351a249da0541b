"""pytorch-136504: a size that became symbolic is handed to a `tl.constexpr` of a user's Triton kernel.

The report's kernel squares a vector and takes the number of elements as a constant. It is compiled with its launcher
and called with two lengths; from the second call on, torch 2.5 writes a module that names the undefined variable s0.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import triton
import triton.language as tl

SIGNATURE = r"NameError: name 's\d+' is not defined"

BLOCK = 256
LENGTHS = (2 * 256 + 5, 3 * 256 + 7, 4 * 256 + 9)


class WrongResult(Exception):
    """The kernel ran, and its numbers are wrong."""


@triton.jit
def _square(x, y, NUMEL: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    value = tl.load(x + at, at < NUMEL)
    tl.store(y + at, value * value, at < NUMEL)


@triton.jit
def _square_of_any_length(x, y, numel, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    value = tl.load(x + at, at < numel)
    tl.store(y + at, value * value, at < numel)


def _launch(x):
    y = torch.empty_like(x)
    numel = x.numel()
    _square[(triton.cdiv(numel, BLOCK),)](x, y, numel, BLOCK)
    return y


def _launch_int(x):
    y = torch.empty_like(x)
    numel = int(x.numel())
    _square[(triton.cdiv(numel, BLOCK),)](x, y, numel, BLOCK)
    return y


def _launch_any_length(x):
    y = torch.empty_like(x)
    numel = x.numel()
    _square_of_any_length[(triton.cdiv(numel, BLOCK),)](x, y, numel, BLOCK)
    return y


def _step(launch):
    """What surrounds the kernel in a model, so that the compiler has something to do in every arm."""
    return lambda x: launch(x + 1) - 1


def _run(step, prepare=lambda x: x):
    torch.manual_seed(0)
    total = 0.0
    for length in LENGTHS:
        x = torch.randn(length, device="cuda")
        got = step(prepare(x))
        torch.cuda.synchronize()
        expected = (x + 1) ** 2 - 1
        if not torch.allclose(got, expected, atol=1e-5):
            worst = (got - expected).abs().max().item()
            raise WrongResult("expected (x + 1) ** 2 - 1, got values {} apart, tolerance 1e-5".format(worst))
        print("length", length, "is right")
        total += got.double().sum().item()
    return {"lengths": len(LENGTHS), "sum": total, "gpu": torch.cuda.get_device_name()}


def control():
    """Not compiled: Triton alone."""
    return _run(_step(_launch))


def baseline():
    return _run(torch.compile(_step(_launch)))


def runtime_arg():
    """The kernel takes the length when it runs."""
    return _run(torch.compile(_step(_launch_any_length)))


def dynamic_false():
    """Every length is compiled anew."""
    return _run(torch.compile(_step(_launch), dynamic=False))


def mark_static():
    """The length of this input is never made symbolic."""

    def mark(x):
        torch._dynamo.mark_static(x, 0)
        return x

    return _run(torch.compile(_step(_launch)), mark)


def compiler_disable():
    """The launcher stays out of the graph; what surrounds it is compiled."""
    return _run(torch.compile(_step(torch.compiler.disable(_launch))))


def int_of_it():
    """int() of a symbolic size is a symbolic size."""
    return _run(torch.compile(_step(_launch_int)))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
