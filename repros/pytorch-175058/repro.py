"""pytorch-175058: a checkpointed block with an int8 linear keeps its activations once the model is compiled.

Ten gated blocks, each in torch.utils.checkpoint, multiply in int8 by an autograd.Function of their own. After the forward
a checkpointed block has to keep its input and nothing else: that is what is counted, in bytes of the allocator.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
from torch.utils.checkpoint import checkpoint

SIGNATURE = r""

BLOCKS, TOKENS, WIDTH = 10, 16384, 64
UNIT = 1 / (127 * 8)  # of a weight


class _Int8Linear(torch.autograd.Function):
    """Quantizes each row, multiplies in int8, and scales back: the weight is frozen, as in the training of an adapter."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(weight)
        scale = x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-6) / 127
        product = torch._int_mm((x / scale).round().to(torch.int8), weight.t())
        return product.to(x.dtype) * (scale * UNIT)

    @staticmethod
    def backward(ctx, grad):
        weight, = ctx.saved_tensors
        return grad @ (weight.to(grad.dtype) * UNIT), None


def _gated(linear, x, up, gate, down):
    return x + linear(linear(x, up) * torch.nn.functional.silu(linear(x, gate)), down)


def _model(linear, x, layers):
    for weights in layers:
        x = checkpoint(_gated, linear, x, *weights, use_reentrant=False)
    return x


def _suspect(x, layers):
    return _model(_Int8Linear.apply, x, layers)


def _straight_through(x, weight):
    """The same numbers without an autograd.Function: the gradient goes through the product in floating point."""
    scale = x.detach().abs().amax(dim=-1, keepdim=True).clamp(min=1e-6) / 127
    product = torch._int_mm((x.detach() / scale).round().to(torch.int8), weight.t())
    through = x @ (weight.t().to(x.dtype) * UNIT)
    return through + (product.to(x.dtype) * (scale * UNIT) - through).detach()


def _without_function(x, layers):
    return _model(_straight_through, x, layers)


def _held(call):
    """What the call returns, and how many bytes of its device's memory are held after it that were not before."""
    if torch.empty(0).is_cuda:
        before = torch.cuda.memory_allocated()
        result = call()
        return result, torch.cuda.memory_allocated() - before
    with torch.autograd.profiler.profile(profile_memory=True) as profile:
        result = call()
    return result, sum(event.nbytes() for event in profile.kineto_results.events() if event.name() == "[memory]")


def _observe(model):
    torch.manual_seed(0)
    layers = [[torch.randint(-127, 128, (WIDTH, WIDTH), dtype=torch.int8) for _ in range(3)] for _ in range(BLOCKS)]
    x = torch.randn(TOKENS, WIDTH, requires_grad=True)
    model(x, layers).sum().backward()  # compiles
    x.grad = None
    result, held = _held(lambda: model(x, layers))
    result.sum().backward()
    return {"held_bytes": held, "result": result.abs().mean().item(), "gradient": x.grad.abs().mean().item()}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, backend="aot_eager_decomp_partition"))


def without_function():
    return _observe(torch.compile(_without_function, backend="aot_eager_decomp_partition"))


def checkpoint_outside():
    """Each block is compiled, and the checkpoint around it is not."""
    block = torch.compile(_gated, backend="aot_eager_decomp_partition")

    def model(x, layers):
        for weights in layers:
            x = checkpoint(block, _Int8Linear.apply, x, *weights, use_reentrant=False)
        return x

    return _observe(model)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
