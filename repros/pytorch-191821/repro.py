"""pytorch-191821: a nested compile region is traced once and reused where the global that it reads has been rebound.

A loop binds a global to a new object twice and runs a marked region that adds 1 to what the object holds: 0 becomes 2.
The reused region still reads the first object, and the result is 1.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected 2 after two rounds, got 1\b"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class NotApplicable(Exception):
    """This build has no torch.compiler.nested_compile_region."""


class _Box:
    def __init__(self, hidden):
        self.hidden = hidden


_box = None


def _region():
    return _box.hidden + 1


def _region_of(hidden):
    return hidden + 1


def _loop(region):
    def rounds(hidden):
        global _box
        for _ in range(2):
            _box = _Box(hidden)
            hidden = region()
        return hidden
    return rounds


def _loop_of_one_box(region):
    def rounds(hidden):
        for _ in range(2):
            _box.hidden = hidden
            hidden = region()
        return hidden
    return rounds


def _loop_of_arguments(region):
    def rounds(hidden):
        for _ in range(2):
            hidden = region(hidden)
        return hidden
    return rounds


def _mark(function):
    mark = getattr(torch.compiler, "nested_compile_region", None)
    if mark is None:
        raise NotApplicable("torch {} has no torch.compiler.nested_compile_region".format(torch.__version__))
    return mark(function)


def _observe(rounds):
    global _box
    _box = _Box(torch.tensor(0))
    got = int(rounds(torch.tensor(0)))
    if got != 2:
        raise WrongResult("expected 2 after two rounds, got {} (exact, tolerance 0)".format(got))
    return {"result": got}


def control(backend="eager"):
    """Not compiled, and not marked; `backend` is what it would have had."""
    return _observe(_loop(_region))


def baseline(backend="eager"):
    return _observe(torch.compile(_loop(_mark(_region)), backend=backend, fullgraph=True))


def argument(backend="eager"):
    """What the region reads comes as its argument."""
    return _observe(torch.compile(_loop_of_arguments(_mark(_region_of)), backend=backend, fullgraph=True))


def unmarked(backend="eager"):
    """The region is inlined twice."""
    return _observe(torch.compile(_loop(_region), backend=backend, fullgraph=True))


def same_object(backend="eager"):
    """The global stays bound to one object, and that is changed."""
    return _observe(torch.compile(_loop_of_one_box(_mark(_region)), backend=backend, fullgraph=True))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
