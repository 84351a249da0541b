"""pytorch-197829: `x[1:] = x[:-1].clone()` compiled with Inductor copies row 0 into every row.

The rows of a small tensor are shifted down by one. Inductor takes the clone out and copies from memory that it is
writing to. The compiled result is compared with plain torch.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected every row to hold the row before it, got \d+ of \d+ elements wrong"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _shift(x):
    x[1:] = x[:-1].clone()
    return x


def _shift_by_cat(x):
    return torch.cat([x[:1], x[:-1]])


def _shift_by_cat_in_place(x):
    x.copy_(torch.cat([x[:1], x[:-1]]))
    return x


def _shift_whole_clone(x):
    x[1:] = x.clone()[:-1]
    return x


def _observe(function):
    torch.manual_seed(0)
    x = torch.rand(3, 16, 16)
    expected = x[[0, 0, 1]]
    got = function(x.clone())
    wrong = int((got != expected).sum())
    if wrong:
        raise WrongResult("expected every row to hold the row before it, got {} of {} elements wrong; row 2 is row {}"
                          .format(wrong, x.numel(), [row for row in range(3) if torch.equal(got[2], x[row])]))
    return {"elements": got.numel(), "wrong": wrong}


def control():
    return _observe(_shift)


def baseline():
    return _observe(torch.compile(_shift))


def cat_new():
    """Nothing is written in place."""
    return _observe(torch.compile(_shift_by_cat))


def cat_in_place():
    """The shifted copy is whole before anything is written."""
    return _observe(torch.compile(_shift_by_cat_in_place))


def no_pattern_matcher():
    return _observe(torch.compile(_shift, options={"pattern_matcher": False}))


def aot_eager():
    return _observe(torch.compile(_shift, backend="aot_eager"))


def whole_clone():
    return _observe(torch.compile(_shift_whole_clone))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
