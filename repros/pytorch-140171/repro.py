"""pytorch-140171: an in-place write through as_strided beyond the view that is the argument cannot be compiled.

The argument is the first half of a tensor; as_strided takes ten elements from the middle of its storage and adds 1 to
them. The elements that come back and the whole storage are compared with what must come out.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"as_strided_scatter: sizes [^:\n]* out of bounds for storage|expected the elements [^gx\n]* in the storage [^gx\n]*, got [^x\n]* \(tolerance 0\)"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _beyond(x):
    v = x.as_strided((10,), (1,), storage_offset=5)
    v.add_(1)
    return v


def _slice(base):
    v = base[5:15]
    v.add_(1)
    return v


def _add_one(v):
    v.add_(1)
    return v


def _judge(result, base):
    storage = list(range(5)) + list(range(6, 16)) + list(range(15, 20))
    if result.tolist() != storage[5:15] or base.tolist() != storage:
        raise WrongResult("expected the elements {} in the storage {}, got {} in {} (tolerance 0)".format(
            storage[5:15], storage, result.tolist(), base.tolist()))
    return {"elements": result.tolist(), "storage": base.tolist()}


def control(backend="inductor"):
    base = torch.arange(20)
    return _judge(_beyond(base[:10]), base)


def baseline(backend="inductor"):
    base = torch.arange(20)
    return _judge(torch.compile(_beyond, backend=backend)(base[:10]), base)


def base_argument(backend="inductor"):
    """The base is the argument and is sliced inside."""
    base = torch.arange(20)
    return _judge(torch.compile(_slice, backend=backend)(base), base)


def strided_outside(backend="inductor"):
    """as_strided is called before the compiled function."""
    base = torch.arange(20)
    return _judge(torch.compile(_add_one, backend=backend)(base[:10].as_strided((10,), (1,), 5)), base)


def copy_back(backend="inductor"):
    """The sum is computed out of place and copied into the storage outside."""
    base = torch.arange(20)
    target = base[:10].as_strided((10,), (1,), 5)
    target.copy_(torch.compile(lambda v: v + 1, backend=backend)(target))
    return _judge(target, base)


def dynamic_true(backend="inductor"):
    base = torch.arange(20)
    return _judge(torch.compile(_beyond, backend=backend, dynamic=True)(base[:10]), base)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
