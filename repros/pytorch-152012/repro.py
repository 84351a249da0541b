"""pytorch-152012: an exception that is raised inside torch.autocast crashes Dynamo.

A module raises NotImplementedError within `with torch.autocast(...)`; the compiled function catches it behind the block
and returns another result. What comes back is compared with what must come out.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"NoneType' object has no attribute 'is_python_constant'|expected \[4\.0, 4\.0\], got"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Refuses(torch.nn.Module):
    def forward(self, x):
        raise NotImplementedError("not implemented here")


_REFUSES = _Refuses()


def _within(x):
    with torch.autocast(device_type="cpu", dtype=None):
        try:
            _REFUSES(x)
        except NotImplementedError:
            return x + 1


def _through(x):
    """The exception leaves the block."""
    try:
        with torch.autocast(device_type="cpu", dtype=None):
            _REFUSES(x)
    except NotImplementedError:
        return x + 1


def _asked_first(x):
    with torch.autocast(device_type="cpu", dtype=None):
        if not isinstance(_REFUSES, _Refuses):
            _REFUSES(x)
        return x + 1


def _observe(function):
    got = function(torch.ones(2)).tolist()
    if got != [4.0, 4.0]:
        raise WrongResult("expected [4.0, 4.0], got {}".format(got))
    return {"got": got}


def _doubled(function):
    """What comes after the block is compiled also where Dynamo leaves the block itself to Python."""
    return lambda x: function(x) * 2


def control():
    return _observe(_doubled(_through))


def baseline():
    return _observe(torch.compile(_doubled(_through), backend="eager"))


def catch_within():
    """The exception does not leave the block."""
    return _observe(torch.compile(_doubled(_within), backend="eager"))


def ask_first():
    """Nothing is raised: the condition is asked before the call."""
    return _observe(torch.compile(_doubled(_asked_first), backend="eager"))


def autocast_outside():
    """The block of autocast is entered by the caller of the compiled function."""
    def step(x):
        try:
            _REFUSES(x)
        except NotImplementedError:
            return x + 1

    compiled = torch.compile(_doubled(step), backend="eager")

    def call(x):
        with torch.autocast(device_type="cpu", dtype=None):
            return compiled(x)

    return _observe(call)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
