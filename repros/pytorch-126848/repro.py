"""pytorch-126848: Inductor's kernel for the CPU flushes denormal numbers to zero, and leaves the thread doing so.

0.1875 * 2 ** -124 is 8.8e-39, a denormal float32. What a compiled multiplication gives (`what="compiled"`) and what eager
mode gives afterwards (`what="eager_after"`) must be that, to the last bit.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected \S+e-(?:39|4\d), got 0\.0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _scale(t):
    return t * 2.0 ** (-127 + 3)


def _scale_in_double(t):
    return t.double() * 2.0 ** (-127 + 3)


def _checked(result):
    if result != 0.1875 * 2.0 ** -124:
        raise WrongResult("expected 8.816207631167156e-39, got {} (tolerance 0)".format(result))
    return result


def _observe(what, function, then=lambda: None):
    """`then` is called after the first call of the function."""
    x = torch.tensor(0.1875)
    before = _scale(x).item()
    compiled = function(x)
    then()
    told = compiled.item() if what == "compiled" else _scale(x).item()
    return {"eager": _checked(before), what: _checked(told)}


def control(what="compiled"):
    return _observe(what, _scale)


def baseline(what="compiled"):
    return _observe(what, torch.compile(_scale))


def aot_eager(what="compiled"):
    return _observe(what, torch.compile(_scale, backend="aot_eager"))


def in_double(what="compiled"):
    """The denormals of float32 are ordinary numbers of float64."""
    return _observe(what, torch.compile(_scale_in_double))


def unflush_after(what="compiled"):
    """The thread is told to keep denormals, after the call that compiled."""
    return _observe(what, torch.compile(_scale), lambda: torch.set_flush_denormal(False))


def warm_up(what="compiled"):
    """One call for the compiler; then the thread is told to keep denormals; then the call that counts."""
    compiled = torch.compile(_scale)
    compiled(torch.tensor(1.0))
    torch.set_flush_denormal(False)
    return _observe(what, compiled)


def unflush_before(what="compiled"):
    """The thread is told to keep denormals before anything is compiled."""
    torch.set_flush_denormal(False)
    return _observe(what, torch.compile(_scale))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
