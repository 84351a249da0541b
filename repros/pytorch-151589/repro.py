"""pytorch-151589: Inductor tells Triton that the float32 view of an offset slice starts at a multiple of 16 bytes.

It starts at byte 4, as in GGUF de-quantisation, and on CUDA loads of 8 or 16 bytes then hit a misaligned address. Each
arm computes `x[2:].view(float32) + 1` of a bfloat16 tensor, or the same in other words, and compares with eager mode.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"misaligned address|Expect the tensor to be \d+ bytes aligned\. Fail due to storage_offset=\d+ itemsize=\d+"

ENV = {
    "asserts_off": {"TORCHINDUCTOR_ALIGNMENT_ASSERTS": "0"},
    "assume_unaligned": {"TORCHINDUCTOR_ASSUME_UNALIGNED_FALLBACK_OUTPUT": "1"},
}


class WrongResult(Exception):
    """The kernel ran, and its numbers are wrong."""


def _slice_then_view(x):
    return x[2:].view(dtype=torch.float32) + 1


def _compare(function, size, how, skip=2):
    """Run `function`, as `how` makes it, on `size` floats behind `skip` elements of bfloat16."""
    torch.manual_seed(0)
    x = torch.randn(2 * size + skip, device="cuda", dtype=torch.bfloat16)
    expected = function(x)
    got = how(function)(x)
    torch.cuda.synchronize()
    if not torch.equal(got, expected):
        wrong = int((got != expected).sum())
        raise WrongResult("expected {} equal elements, got {} other ones, tolerance 0".format(expected.numel(), wrong))
    return {"elements": got.numel(), "sum": float(got.double().sum()), "gpu": torch.cuda.get_device_name()}


def control(size=1024):
    """Not compiled."""
    return _compare(_slice_then_view, size, lambda function: function)


def baseline(size=1024):
    return _compare(_slice_then_view, size, torch.compile)


def aot_eager(size=1024):
    return _compare(_slice_then_view, size, lambda function: torch.compile(function, backend="aot_eager"))


def view_then_slice(size=1024):
    """The view is taken of the whole tensor, which is aligned; the slice is an offset that Inductor knows."""
    return _compare(lambda x: x.view(dtype=torch.float32)[1:] + 1, size, torch.compile)


def clone_after_slice(size=1024):
    """Inductor's post-grad passes remove the copy: to them, a clone that nobody writes to is no work at all."""
    return _compare(lambda x: x[2:].clone().view(dtype=torch.float32) + 1, size, torch.compile)


def clone_before_compiled(size=1024):
    """The copy is made outside of what is compiled, where Inductor cannot remove it."""
    compiled = torch.compile(lambda rest: rest.view(dtype=torch.float32) + 1)
    return _compare(_slice_then_view, size, lambda function: lambda x: compiled(x[2:].clone()))


def contiguous_after_slice(size=1024):
    """The slice is contiguous already, so that nothing is copied."""
    return _compare(lambda x: x[2:].contiguous().view(dtype=torch.float32) + 1, size, torch.compile)


def aligned_slice(size=1024):
    """The header is padded to 8 elements of 2 bytes."""
    return _compare(lambda x: x[8:].view(dtype=torch.float32) + 1, size, torch.compile, skip=8)


def no_divisibility(size=1024):
    """No kernel is told of any multiple of 16."""
    options = {"triton.divisible_by_16": False}
    return _compare(_slice_then_view, size, lambda function: torch.compile(function, options=options))


def asserts_off(size=1024):
    """ENV removes the assertion; what it asserts stays as it is."""
    return _compare(_slice_then_view, size, torch.compile)


def assume_unaligned(size=1024):
    """ENV makes Inductor claim nothing of what a fallback kernel, such as a dtype view, returns."""
    return _compare(_slice_then_view, size, torch.compile)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
