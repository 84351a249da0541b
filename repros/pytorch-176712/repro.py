"""pytorch-176712: Inductor cannot write down a global of a user's Triton kernel that is a dtype.

Kernels that convert, or reinterpret, numbers to a dtype which they name without `tl.` before it. Each is launched
inside a compiled function; the result is compared with what torch computes.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import triton
import triton.language as tl
from triton.language import core, float32, int32

SIGNATURE = (
    r"AttributeError: ('dtype' object has no attribute '__name__'|module 'triton\.language' has no attribute 'fp\d+')"
)

SIZE, BLOCK = 1000, 256

INT32 = tl.constexpr(tl.int32)
FLOAT32 = tl.constexpr(tl.float32)

_constexpr_function = getattr(triton, "constexpr_function", None)  # from Triton 3.5 on
_int_of_width = _constexpr_function(core.get_int_dtype) if _constexpr_function else None


class WrongResult(Exception):
    """The kernel ran, and its numbers are wrong."""


class NotApplicable(Exception):
    """This Triton lacks what the variant is about."""


@triton.jit
def _to_int(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n).to(int32), at < n)


@triton.jit
def _to_int_qualified(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n).to(tl.int32), at < n)


@triton.jit
def _to_int_constexpr(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n).to(INT32), at < n)


@triton.jit
def _to_float(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n).to(float32) * 0.5, at < n)


@triton.jit
def _to_float_qualified(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n).to(tl.float32) * 0.5, at < n)


@triton.jit
def _to_float_constexpr(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n).to(FLOAT32) * 0.5, at < n)


@triton.jit
def _bits(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    value = tl.load(x + at, at < n)
    kind = _int_of_width(bitwidth=value.dtype.primitive_bitwidth, signed=True)
    tl.store(y + at, value.to(kind, bitcast=True), at < n)


@triton.jit
def _bits_qualified(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    value = tl.load(x + at, at < n)
    if value.dtype.primitive_bitwidth == 32:
        bits = value.to(tl.int32, bitcast=True)
    else:
        bits = value.to(tl.int16, bitcast=True)
    tl.store(y + at, bits, at < n)


KERNELS = {
    "int32": {"bare": _to_int, "qualified": _to_int_qualified, "constexpr": _to_int_constexpr},
    "float32": {"bare": _to_float, "qualified": _to_float_qualified, "constexpr": _to_float_constexpr},
    "int_of_width": {"bare": _bits, "qualified": _bits_qualified},
}


def _launcher(case, form):
    """A function of a tensor that launches one of the kernels."""
    if case == "int_of_width" and _constexpr_function is None:
        raise NotApplicable("this Triton has no constexpr_function")
    kernel = KERNELS[case][form]
    dtype = torch.float32 if case == "float32" else torch.int32

    def launch(x):
        y = torch.empty_like(x, dtype=dtype)
        kernel[(triton.cdiv(SIZE, BLOCK),)](x, y, SIZE, BLOCK)
        return y

    return launch


def _observe(case, launch, how):
    torch.manual_seed(0)
    x = torch.randn(SIZE, device="cuda") * 100
    x = x.to(torch.int32) if case == "float32" else x
    got = how(lambda t: launch(t + 1) * 2)(x)  # what surrounds the kernel gives Inductor something to write, too
    torch.cuda.synchronize()
    shifted = x + 1
    converted = {
        "int32": lambda: shifted.to(torch.int32),
        "float32": lambda: shifted.to(torch.float32) * 0.5,
        "int_of_width": lambda: shifted.view(torch.int32),
    }[case]()
    if not torch.equal(got, converted * 2):
        wrong = int((got != converted * 2).sum())
        raise WrongResult("expected {} equal elements, got {} other ones, tolerance 0".format(SIZE, wrong))
    return {"case": case, "sum": float(got.double().sum()), "gpu": torch.cuda.get_device_name()}


def control(case="int32"):
    """Not compiled: Triton alone."""
    return _observe(case, _launcher(case, "bare"), lambda function: function)


def baseline(case="int32"):
    return _observe(case, _launcher(case, "bare"), torch.compile)


def qualified(case="int32"):
    """Nothing but `tl` is a global of the kernel."""
    return _observe(case, _launcher(case, "qualified"), torch.compile)


def constexpr_global(case="int32"):
    """Inductor writes a constexpr down by its value."""
    return _observe(case, _launcher(case, "constexpr"), torch.compile)


def compiler_disable(case="int32"):
    """The launcher stays out of the graph; what surrounds it is compiled."""
    return _observe(case, torch.compiler.disable(_launcher(case, "bare")), torch.compile)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
