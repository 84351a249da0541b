"""pytorch-193933: copy_ into an empty_like of a plain subclass of Tensor compiles to code with a name that is not defined.

A tensor of a subclass without methods of its own is copied; all ones must come out.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"name '__subclass_\w+' is not defined"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class Bare(torch.Tensor):
    """A subclass that changes nothing."""


def _suspect(t):
    y = torch.empty_like(t)
    y.copy_(t)
    return y


def _clone(t):
    return t.clone()


def _observe(function, enter=lambda t: t, leave=lambda t: t):
    t = torch.ones(4).as_subclass(Bare)
    result = leave(function(enter(t)))
    if result.tolist() != [1.0] * 4:
        raise WrongResult("expected 1 everywhere, got {}".format(result.tolist()))
    return {"result": result.tolist(), "class": type(result).__name__}


def _compiled(function):
    return torch.compile(function, backend="eager")


def control():
    return _observe(_suspect)


def baseline():
    return _observe(_compiled(_suspect))


def clone():
    """One operation makes and fills the copy."""
    return _observe(_compiled(_clone))


def plain():
    """The compiled function sees plain tensors, and what it returns gets the class back."""
    return _observe(_compiled(_suspect), lambda t: t.as_subclass(torch.Tensor), lambda t: t.as_subclass(Bare))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
