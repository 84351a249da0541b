"""pytorch-139789: a graph compiled for separate inputs is reused for inputs that overlap, one of which is written to.

The function doubles its first argument in place and adds the second. Compiled and called with two tensors of their own,
then with two views that share two elements, it must see in the second argument what it wrote through the first.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected the sum [^gx\n]* and the storage [^gx\n]*, got [^x\n]* \(tolerance 0\)"

# From 2.7 on AOTAutograd has a cache of its own, which would hand the first graph to the second call.
ENV = {
    "own_function": {"TORCHINDUCTOR_AUTOGRAD_CACHE": "0"},
    "reset_between": {"TORCHINDUCTOR_AUTOGRAD_CACHE": "0"},
}


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _double_and_add(x, y):
    x.mul_(2)
    return x + y


def _on_halves(base):
    """The same, with the views taken in here."""
    return _double_and_add(base[:4], base[2:6])


def _overlapping():
    base = torch.ones(8)
    return base, base[:4], base[2:6]


def _judge(result, base):
    expected, after = [4.0, 4.0, 3.0, 3.0], [2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0]
    if result.tolist() != expected or base.tolist() != after:
        raise WrongResult("expected the sum {} and the storage {}, got {} and {} (tolerance 0)".format(
            expected, after, result.tolist(), base.tolist()))
    return {"sum": result.tolist(), "storage": base.tolist()}


def _apart(storage):
    """Arguments of the first call, which share no element."""
    if storage == "one":
        base = torch.ones(8)
        return base[:4], base[4:]
    return torch.ones(4), torch.ones(4)


def _twice(first, second, storage):
    first(*_apart(storage))
    base, x, y = _overlapping()
    return _judge(second(x, y), base)


def control(backend="aot_eager", storage="two"):
    return _twice(_double_and_add, _double_and_add, storage)


def baseline(backend="aot_eager", storage="two"):
    compiled = torch.compile(_double_and_add, backend=backend)
    return _twice(compiled, compiled, storage)


def views_inside(backend="aot_eager", storage="two"):
    """The base is the argument, so that the graph itself knows that its views overlap."""
    compiled = torch.compile(_double_and_add, backend=backend)
    compiled(*_apart(storage))
    base = torch.ones(8)
    return _judge(torch.compile(_on_halves, backend=backend)(base), base)


def own_function(backend="aot_eager", storage="two"):
    """A function of its own, compiled for arguments that overlap and called with no others."""
    def double_and_add_overlapping(x, y):
        x.mul_(2)
        return x + y

    return _twice(torch.compile(_double_and_add, backend=backend),
                  torch.compile(double_and_add_overlapping, backend=backend), storage)


def reset_between(backend="aot_eager", storage="two"):
    """Everything compiled so far is forgotten before the arguments overlap."""
    compiled = torch.compile(_double_and_add, backend=backend)

    def second(x, y):
        torch._dynamo.reset()
        return compiled(x, y)

    return _twice(compiled, second, storage)


def dynamic_true(backend="aot_eager", storage="two"):
    compiled = torch.compile(_double_and_add, backend=backend, dynamic=True)
    return _twice(compiled, compiled, storage)


def clone_argument(backend="aot_eager", storage="two"):
    """The copy overlaps nothing, and does not see what is written either."""
    compiled = torch.compile(_double_and_add, backend=backend)
    return _twice(compiled, lambda x, y: compiled(x, y.clone()), storage)


def overlap_first(backend="aot_eager", storage="two"):
    """Warmed up with arguments that overlap, called with others, and then as the baseline is."""
    compiled = torch.compile(_double_and_add, backend=backend)
    compiled(*_overlapping()[1:])
    apart = compiled(*_apart(storage)).tolist()
    if apart != [3.0] * 4:
        raise WrongResult("expected the sum [3.0, 3.0, 3.0, 3.0] and the storage unread, got {} (tolerance 0)".format(apart))
    base, x, y = _overlapping()
    return _judge(compiled(x, y), base)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
