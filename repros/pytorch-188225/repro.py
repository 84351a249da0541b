"""pytorch-188225: softmax of a tensor known to be NaN does not compile.

The function takes no input; arccosh of a negative number is NaN, and so is the softmax of it.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"The argument '?nan'? is not comparable"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect():
    angles = torch.atan2(torch.ones(2, 2), torch.ones(2, 2))
    return torch.softmax(torch.arccosh(torch.log2(angles)), -1)


def _suspect_full():
    return torch.softmax(torch.full((2, 2), float("nan")), -1)


_FUNCTIONS = {"report": _suspect, "full": _suspect_full}


def _observe(function):
    got = torch.isnan(function()).tolist()
    if got != [[True, True]] * 2:
        raise WrongResult("expected NaN in each of the four places, got it where {}".format(got))
    return {"is_nan": got}


def control(tensor="report"):
    return _observe(_FUNCTIONS[tensor])


def baseline(tensor="report"):
    return _observe(torch.compile(_FUNCTIONS[tensor]))


def from_outside(tensor="report"):
    """What is an argument is no constant."""
    values = torch.arccosh(torch.log2(torch.atan2(torch.ones(2, 2), torch.ones(2, 2))))
    softmax = torch.compile(lambda x: torch.softmax(x, -1))
    return _observe(lambda: softmax(values if tensor == "report" else torch.full((2, 2), float("nan"))))


def no_propagation(tensor="report"):
    return _observe(torch.compile(_FUNCTIONS[tensor], options={"constant_and_index_propagation": False}))


def aot_eager(tensor="report"):
    return _observe(torch.compile(_FUNCTIONS[tensor], backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
