"""pytorch-198095: a view of an input is rebuilt from the wrong tensor where two inputs share memory.

`tail` is `t[1:]`; the function updates `t` in place and returns `tail[0]`, which is row 1 of `t`. Compiled, row 0
comes back.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected row starting at \S+, got one starting at \S+"


class WrongResult(Exception):
    """The function returned without an error, and with another row."""


def _first_of_tail(t, tail):
    t.add_(100)
    return tail[0]


def _observe(function, start=1):
    """Call function(t, t[start:start + 3]) on rows of 0..5, 6..11, 12..17, 18..23; all of them get 100 more."""
    t = torch.arange(24, dtype=torch.float64).reshape(4, 6).clone()  # the clone is no view, as in the report
    got = function(t, t[start : start + 3])
    expected = torch.arange(24, dtype=torch.float64).reshape(4, 6)[start] + 100
    if not torch.equal(got, expected):
        text = "expected row starting at {}, got one starting at {} (exact)"
        raise WrongResult(text.format(expected[0].item(), got.flatten()[0].item()))
    return {"first": got[0].item(), "updated": t[0, 0].item()}


def _compile(function, backend="aot_eager"):
    return torch.compile(function, fullgraph=True, backend=backend)


def control(start=1, backend="aot_eager"):
    return _observe(_first_of_tail, start)


def baseline(start=1, backend="aot_eager"):
    return _observe(_compile(_first_of_tail, backend), start)


def clone_output(start=1, backend="aot_eager"):
    """A tensor of its own is not rebuilt from an input."""

    def function(t, tail):
        t.add_(100)
        return tail[0].clone()

    return _observe(_compile(function, backend), start)


def view_inside(start=1, backend="aot_eager"):
    """One input only: the compiled function takes the slice itself."""

    def function(t):
        t.add_(100)
        return t[start : start + 3][0]

    compiled = _compile(function, backend)
    return _observe(lambda t, tail: compiled(t), start)


def index_outside(start=1, backend="aot_eager"):
    """The compiled function updates, the caller takes the view."""

    def function(t, tail):
        t.add_(100)
        return tail.sum()

    compiled = _compile(function, backend)

    def caller(t, tail):
        compiled(t, tail)
        return tail[0]

    return _observe(caller, start)


def contiguous(start=1, backend="aot_eager"):
    """The row is contiguous already: nothing is copied, and it stays a view."""

    def function(t, tail):
        t.add_(100)
        return tail[0].contiguous()

    return _observe(_compile(function, backend), start)


def eager_backend(start=1, backend="aot_eager"):
    return _observe(_compile(_first_of_tail, "eager"), start)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
