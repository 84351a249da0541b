"""triton-7181: an autotuned kernel's reset_to_zero is not applied once it is tuned.

A kernel that adds one to every element is launched three times; each time the elements are expected to be one.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import triton
import triton.language as tl

SIGNATURE = r"expected 1\.0 after each launch, got \[[\d., ]+\]"

SIZE = 1000


class WrongResult(Exception):
    """The kernel ran, and added to what an earlier launch left."""


@triton.jit
def _add_one(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) + 1.0, mask=at < n)


def _zero(arguments):
    arguments["x_ptr"].zero_()


def _tuned(hook=None, **options):
    configs = [triton.Config({"BLOCK": block}, num_warps=4, pre_hook=hook) for block in (128, 256)]
    return triton.autotune(configs=configs, key=["n"], **options)(_add_one)


def _grid(meta):
    return (triton.cdiv(SIZE, meta["BLOCK"]),)


def _observe(launch):
    """Call `launch(x)` three times with the same tensor and look at it after each."""
    x = torch.zeros(SIZE, device="cuda")
    values = []
    for _ in range(3):
        launch(x)
        torch.cuda.synchronize()
        low, high = x.min().item(), x.max().item()
        values.append(low if low == high else float("nan"))
    print("values after each launch:", values)
    if values != [1.0, 1.0, 1.0]:
        raise WrongResult("expected 1.0 after each launch, got {}, tolerance 0".format(values))
    return {"values": values, "triton": triton.__version__}


def control():
    """PyTorch in place of the kernel."""
    return _observe(lambda x: x.zero_().add_(1.0))


def baseline():
    kernel = _tuned(reset_to_zero=["x_ptr"])
    return _observe(lambda x: kernel[_grid](x, SIZE))


def config_pre_hook():
    """The configurations' own hook zeroes."""
    kernel = _tuned(_zero)
    return _observe(lambda x: kernel[_grid](x, SIZE))


def zero_before_call():
    """The caller zeroes; the option is there for the trials."""
    kernel = _tuned(reset_to_zero=["x_ptr"])

    def launch(x):
        x.zero_()
        kernel[_grid](x, SIZE)

    return _observe(launch)


def no_autotune():
    """One configuration, and the caller zeroes."""

    def launch(x):
        x.zero_()
        _add_one[(triton.cdiv(SIZE, 256),)](x, SIZE, BLOCK=256)

    return _observe(launch)


def restore_value():
    """The trials leave no trace; the launches do."""
    kernel = _tuned(restore_value=["x_ptr"])
    return _observe(lambda x: kernel[_grid](x, SIZE))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
