"""pytorch-64529: the gradient of sum() is one number seen as many, and an operator that walks its memory reads others.

An operator triples five numbers; its backward takes the pointer of the gradient and walks it as if it were contiguous,
the way C++ and CUDA kernels do. The gradient that autograd hands it after sum() has stride 0: all five are one element.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import ctypes

import torch

SIGNATURE = r"expected the gradient \[3\.0, 3\.0, 3\.0, 3\.0, 3\.0\], got \[3\.0, (nan|21\.0), "

_library = torch.library.Library("walk", "DEF")
_library.define("triple(Tensor x) -> Tensor")
_library.define("triple_contiguous(Tensor x) -> Tensor")
_library.define("triple_strided(Tensor x) -> Tensor")


class WrongResult(Exception):
    """Backward ran without an error, and its numbers are wrong."""


def _memory(x):
    """The floats from the tensor's pointer to the end of its storage: what a kernel may read without leaving it."""
    count = (x.untyped_storage().nbytes() - x.storage_offset() * 4) // 4
    return (ctypes.c_float * count).from_address(x.data_ptr())


def _triple(x, stride=1):
    """Three times each element, read by pointer. What lies outside of the storage is not read: nan stands for it."""
    memory, result = _memory(x), torch.empty(x.numel())
    for i in range(x.numel()):
        result[i] = 3 * memory[i * stride] if i * stride < len(memory) else float("nan")
    return result


_library.impl("triple", _triple, "CPU")
_library.impl("triple_contiguous", lambda x: _triple(x.contiguous()), "CPU")
_library.impl("triple_strided", lambda x: _triple(x, x.stride(0)), "CPU")


class _Triple(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, backward_operator):
        ctx.backward_operator = backward_operator
        return torch.ops.walk.triple(x)

    @staticmethod
    def backward(ctx, gradient):
        print("backward is given strides", gradient.stride(), "contiguous:", gradient.is_contiguous(),
              "elements of its storage:", gradient.untyped_storage().nbytes() // 4)
        return ctx.backward_operator(gradient), None


def _loss_gradient(storage):
    """What backward() begins with: a 1 that is alone in its storage, as by default, or one with others behind it."""
    if storage == "alone":
        return torch.ones(1)[0]
    return torch.tensor([1.0] + [7.0] * 7)[0]


def _run(operation, storage, reduce=torch.sum):
    x = torch.arange(1.0, 6.0, requires_grad=True)
    y = operation(x)
    reduce(y).backward(_loss_gradient(storage))
    forward, gradient = y.detach().tolist(), x.grad.tolist()
    if forward != [3.0, 6.0, 9.0, 12.0, 15.0]:
        raise WrongResult("expected the forward [3.0, 6.0, 9.0, 12.0, 15.0], got {}".format(forward))
    if any(abs(value - 3.0) > 1e-6 or value != value for value in gradient):
        raise WrongResult("expected the gradient {}, got {}".format([3.0] * 5, gradient))
    return {"forward": forward, "gradient": gradient}


def control(storage="alone"):
    """torch's own multiplication, which goes by strides."""
    return _run(lambda x: x * 3, storage)


def baseline(storage="alone"):
    return _run(lambda x: _Triple.apply(x, torch.ops.walk.triple), storage)


def op_contiguous(storage="alone"):
    """The operator of backward makes its gradient contiguous first."""
    return _run(lambda x: _Triple.apply(x, torch.ops.walk.triple_contiguous), storage)


def use_strides(storage="alone"):
    """The operator of backward steps by the gradient's stride, which is 0."""
    return _run(lambda x: _Triple.apply(x, torch.ops.walk.triple_strided), storage)


def hook(storage="alone"):
    """The operator stays as it is; a hook on its result makes the gradient contiguous on its way there."""
    def hooked(x):
        y = _Triple.apply(x, torch.ops.walk.triple)
        y.register_hook(lambda gradient: gradient.contiguous())
        return y

    return _run(hooked, storage)


def dot(storage="alone"):
    """A dot product with ones is the same sum, and its gradient is computed instead of expanded."""
    return _run(lambda x: _Triple.apply(x, torch.ops.walk.triple), storage, lambda y: torch.dot(y, torch.ones_like(y)))


def clone(storage="alone"):
    """A copy of the result before sum(): its backward hands the same expanded gradient on."""
    return _run(lambda x: _Triple.apply(x, torch.ops.walk.triple).clone(), storage)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
