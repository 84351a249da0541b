"""pytorch-152262: a compiled iterator that list() has used up gives its elements again.

After list(it) nothing is left in the iterator, so that next(it) raises StopIteration, which the function answers with 0.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected an exhausted iterator \(0\), got element [13]\.0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _by_reversed(x):
    iterator = reversed([1, 2, 3])
    taken = list(iterator)
    try:
        left = next(iterator)
    except StopIteration:
        left = 0
    return x + left, x + len(taken)


def _by_iter(x):
    iterator = iter([1, 2, 3])
    taken = list(iterator)
    try:
        left = next(iterator)
    except StopIteration:
        left = 0
    return x + left, x + len(taken)


def _by_pop(x):
    values, taken = [1, 2, 3], []
    while values:
        taken.append(values.pop())
    left = values.pop() if values else 0
    return x + left, x + len(taken)


_KINDS = {"reversed": _by_reversed, "iter": _by_iter}


def _observe(function):
    left, taken = (tensor.item() for tensor in function(torch.zeros(())))
    if left != 0.0:
        raise WrongResult("expected an exhausted iterator (0), got element {}".format(left))
    if taken != 3.0:
        raise WrongResult("expected 3 elements, got {}".format(taken))
    return {"left": left, "taken": taken}


def control(kind="reversed"):
    return _observe(_KINDS[kind])


def baseline(kind="reversed"):
    return _observe(torch.compile(_KINDS[kind], backend="eager", fullgraph=True))


def pop(kind="reversed"):
    """Elements are popped off a list; what is left in it is known."""
    return _observe(torch.compile(_by_pop, backend="eager", fullgraph=True))


def in_python(kind="reversed"):
    """Dynamo leaves what uses the iterator to Python."""
    walk = torch.compiler.disable(_KINDS[kind])
    return _observe(torch.compile(lambda x: walk(x + 0), backend="eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
