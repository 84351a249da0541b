"""pytorch-187018: Inductor's C++ takes the abs of a uint8 with std::abs, and from there on computes with an int.

Eager arithmetic of uint8 wraps at 256: -abs(200) is 56. The generated kernel has an int of -200 where eager has 56,
and a sum shows the difference.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected sum \d+, got -\d+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _twice(x):
    """The report's function: the negated value is used twice, so that it is stored between two kernels."""
    y = -x.abs()
    return torch.cat([y, y]).sum()


def _once(x):
    return (-x.abs()).sum()


def _twice_without_abs(x):
    y = -x
    return torch.cat([y, y]).sum()


def _twice_masked(x):
    y = (-x.abs()) & 255
    return torch.cat([y, y]).sum()


def _twice_cast(x):
    y = (-x.abs()).to(torch.uint8)
    return torch.cat([y, y]).sum()


_FUNCTIONS = {"twice": _twice, "once": _once}


def _observe(function, case, n):
    """200 wraps to 56 when it is negated, whichever way it got there."""
    expected = 56 * n * (2 if case == "twice" else 1)
    got = int(function(torch.full((n,), 200, dtype=torch.uint8)))
    if got != expected:
        raise WrongResult("expected sum {}, got {} (exact, tolerance 0)".format(expected, got))
    return {"sum": got, "vector_isa": torch.backends.cpu.get_cpu_capability()}


def control(case="twice", n=2):
    return _observe(_FUNCTIONS[case], case, n)


def baseline(case="twice", n=2):
    return _observe(torch.compile(_FUNCTIONS[case], fullgraph=True), case, n)


def without_abs(case="twice", n=2):
    """No unsigned value is negative: its abs is itself."""
    return _observe(torch.compile(_twice_without_abs, fullgraph=True), "twice", n)


def mask_255(case="twice", n=2):
    """The lower eight bits of an int are what a uint8 would hold."""
    return _observe(torch.compile(_twice_masked, fullgraph=True), "twice", n)


def aot_eager(case="twice", n=2):
    return _observe(torch.compile(_FUNCTIONS[case], backend="aot_eager", fullgraph=True), case, n)


def cast_back(case="twice", n=2):
    """A cast from uint8 to uint8 is nothing to Inductor, and is not in the kernel."""
    return _observe(torch.compile(_twice_cast, fullgraph=True), "twice", n)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
