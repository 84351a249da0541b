"""fla-160: a batch size that became symbolic reaches a `tl.constexpr` of a user's Triton kernel as the bare name s2.

A kernel with Flash Linear Attention's mix of heuristics and constexpr sizes scales rows; it is compiled with its launcher
and called with batches of 2, 3 and 5. From the second on, torch 2.5 writes a module that names a variable nobody defines.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import triton
import triton.language as tl

SIGNATURE = r"NameError: name 's\d+' is not defined"

BATCHES = (2, 3, 5)
WIDTH = 8


class WrongResult(Exception):
    """The kernel ran, and its numbers are wrong."""


@triton.heuristics({"USE_INITIAL_STATE": lambda arguments: arguments["h0"] is not None})
@triton.jit
def _scale_rows(x, y, h0, scale, B: tl.constexpr, T: tl.constexpr, USE_INITIAL_STATE: tl.constexpr):
    at = tl.program_id(0)
    tl.store(y + at, tl.load(x + at) * scale, mask=at < B * T)


@triton.jit
def _scale_rows_of_any_batch(x, y, scale, B, T):
    at = tl.program_id(0)
    tl.store(y + at, tl.load(x + at) * scale, mask=at < B * T)


def _launch(x):
    B, T = x.shape
    y = torch.empty_like(x)
    _scale_rows[(B * T,)](x, y, None, 2.0, B=B, T=T)
    return y


def _launch_any_batch(x):
    B, T = x.shape
    y = torch.empty_like(x)
    _scale_rows_of_any_batch[(B * T,)](x, y, 2.0, B, T)
    return y


def _layer(launch):
    """What surrounds the kernel in a model, so that the compiler has something to do in every arm."""
    return lambda x: launch(x + 1) - 1


def _run(layer, prepare=lambda x: x):
    torch.manual_seed(0)
    total = 0.0
    for batch in BATCHES:
        x = torch.randn(batch, WIDTH, device="cuda")
        got = layer(prepare(x))[:batch]
        torch.cuda.synchronize()
        expected = (x + 1) * 2 - 1
        if not torch.allclose(got, expected, atol=1e-6):
            worst = (got - expected).abs().max().item()
            raise WrongResult("expected (x + 1) * 2 - 1, got values {} apart, tolerance 1e-6".format(worst))
        print("batch", batch, "is right")
        total += got.double().sum().item()
    return {"batches": len(BATCHES), "sum": total, "gpu": torch.cuda.get_device_name()}


def control():
    """Not compiled: Triton alone."""
    return _run(_layer(_launch))


def baseline():
    return _run(torch.compile(_layer(_launch)))


def compiler_disable():
    """What Flash Linear Attention did: the launcher stays out of the graph."""
    return _run(torch.compile(_layer(torch.compiler.disable(_launch))))


def dynamic_false():
    """Every shape is compiled anew."""
    return _run(torch.compile(_layer(_launch), dynamic=False))


def mark_static():
    """The batch size of this input is never made symbolic."""

    def mark(x):
        torch._dynamo.mark_static(x, 0)
        return x

    return _run(torch.compile(_layer(_launch)), mark)


def runtime_arg():
    """The kernel takes its sizes when it runs."""
    return _run(torch.compile(_layer(_launch_any_batch)))


def pad_batch():
    """Every batch is padded to the largest one."""
    return _run(
        torch.compile(_layer(_launch)),
        lambda x: torch.nn.functional.pad(x, (0, 0, 0, max(BATCHES) - x.shape[0])),
    )


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
