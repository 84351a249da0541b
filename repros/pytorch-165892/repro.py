"""pytorch-165892: Inductor's lowering of torch.bmm asserts that nobody asked for an out_dtype.

The product of two float16 tensors with float32 results, followed by a relu so that Inductor has a kernel to write. It
is compared with a product of float32 copies.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"AssertionError: out_dtype is not supported for Triton"

SIZE = 1024


class WrongResult(Exception):
    """The product was computed, and it is wrong."""


def _bmm(a, b):
    return torch.bmm(a, b, out_dtype=torch.float32)


def _linear(a, b):
    return (_bmm(a, b) - 1).relu()


def _linear_of_casts(a, b):
    return (torch.bmm(a.float(), b.float()) - 1).relu()


def _observe(function):
    torch.manual_seed(0)
    a, b = (torch.randn(1, SIZE, SIZE, device="cuda", dtype=torch.float16) for _ in range(2))
    got = function(a, b)
    torch.cuda.synchronize()
    expected = (torch.bmm(a.float(), b.float()) - 1).relu()
    worst = (got - expected).abs().max().item()
    if got.dtype != torch.float32 or not worst < 0.05:
        raise WrongResult(
            "expected a float32 product, got {} and values {} apart, tolerance 0.05".format(got.dtype, worst)
        )
    return {"dtype": str(got.dtype), "worst": worst, "gpu": torch.cuda.get_device_name()}


def control(mode="default"):
    """Not compiled."""
    return _observe(_linear)


def baseline(mode="default"):
    return _observe(torch.compile(_linear, mode=mode))


def aten_only(mode="default"):
    """No Triton template is a candidate."""
    import torch._inductor.config as inductor_config

    with inductor_config.patch(max_autotune_gemm_backends="ATEN"):
        return _observe(torch.compile(_linear, mode=mode))


def cast_inputs(mode="default"):
    """A product of float32 needs no out_dtype."""
    return _observe(torch.compile(_linear_of_casts, mode=mode))


def outside_the_graph(mode="default"):
    """The product runs uncompiled between two graphs."""
    product = torch.compiler.disable(_bmm)
    return _observe(torch.compile(lambda a, b: (product(a * 1, b) - 1).relu(), mode=mode))


def aot_eager(mode="default"):
    """Without Inductor."""
    return _observe(torch.compile(_linear, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
