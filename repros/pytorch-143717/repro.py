"""pytorch-143717: compiled in-place division of integers is accepted, and rounds.

Seven and nine are divided by two in place. Eager refuses, because 3.5 does not fit into a tensor of integers; the compiled
function must refuse too.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected a refusal, got the quotients \[\d"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


WORDS = "can't be cast to the desired output type"


def _suspect(x):
    return x.div_(2.0)


def _observe(function):
    """Refused, as in eager; the same function takes floats."""
    try:
        got = function(torch.tensor([7, 9])).tolist()
    except RuntimeError as refusal:
        if WORDS not in str(refusal):
            raise
        return {"refused": True, "floats": function(torch.tensor([7.0, 9.0])).tolist()}
    raise WrongResult("expected a refusal, got the quotients {}".format(got))


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, backend="aot_eager", dynamic=False))


def out_of_place():
    """What was meant, in a tensor that can hold it."""
    half = torch.compile(lambda x: x / 2.0, backend="aot_eager")
    got = half(torch.tensor([7, 9])).tolist()
    if got != [3.5, 4.5]:
        raise WrongResult("expected the halves 3.5 and 4.5, got {}".format(got))
    return {"refused": True, "floats": half(torch.tensor([7.0, 9.0])).tolist()}


def check():
    """Eager's own rule, asked before the compiled function is entered."""
    step = torch.compile(_suspect, backend="aot_eager")

    def _guarded(x):
        if not torch.can_cast(torch.result_type(x, 2.0), x.dtype):
            raise RuntimeError("the quotients " + WORDS)
        return step(x)

    return _observe(_guarded)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
