"""pytorch-188231: isclose of bool tensors that are known does not compile.

A bool tensor is close to itself.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"A Boolean argument can only be used in Eq and Ne"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _some():
    return torch.any(torch.full_like(torch.empty([4, 4]), 0.9032569893448766), 1)


def _suspect():
    some = _some()
    return torch.isclose(torch.where(some, some, some), some)


def _equal():
    some = _some()
    return torch.where(some, some, some) == some


def _cast():
    some = _some()
    return torch.isclose(torch.where(some, some, some).to(torch.uint8), some.to(torch.uint8))


def _by_logic():
    some = _some()
    return torch.logical_not(torch.logical_xor(torch.where(some, some, some), some))


def _observe(function):
    got = function().tolist()
    if got != [True] * 4:
        raise WrongResult("expected four times True, got {}".format(got))
    return {"got": got}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect))


def cast():
    """isclose of integers."""
    return _observe(torch.compile(_cast))


def by_logic():
    """Bool values are close where neither is without the other."""
    return _observe(torch.compile(_by_logic))


def from_outside():
    """What is an argument is not known."""
    close = torch.compile(lambda some: torch.isclose(torch.where(some, some, some), some))
    return _observe(lambda: close(_some()))


def aot_eager():
    return _observe(torch.compile(_suspect, backend="aot_eager"))


def equal():
    """It is the comparison in isclose that fails."""
    return _observe(torch.compile(_equal))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
