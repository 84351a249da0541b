"""pytorch-148950: x + torch.conj(x) does not compile.

1 + 2j and 3 - 4j with their conjugates must be 2 and 6.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"view is not supported for conjugate view tensors when converting to a different dtype"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x, scale):
    return x + torch.conj(x), scale * 2


def _physical(x, scale):
    return x + torch.conj_physical(x), scale * 2


def _by_parts(x, scale):
    return torch.complex(x.real + x.real, x.imag - x.imag), scale * 2


def _resolved(x, scale):
    return x + torch.conj(x).resolve_conj(), scale * 2


def _observe(function):
    total, doubled = function(torch.tensor([1.0 + 2.0j, 3.0 - 4.0j]), torch.ones(2))
    real, imaginary = total.real.tolist(), total.imag.tolist()
    if (real, imaginary) != ([2.0, 6.0], [0.0, 0.0]):
        raise WrongResult("expected [2, 6] and no imaginary parts, got {} and {}".format(real, imaginary))
    return {"real": real, "imaginary": imaginary, "doubled": doubled.tolist()}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect))


def physical():
    """No lazy conjugate: it is computed at once."""
    return _observe(torch.compile(_physical))


def by_parts():
    return _observe(torch.compile(_by_parts))


def aot_eager():
    return _observe(torch.compile(_suspect, backend="aot_eager"))


def resolved():
    """Tracing drops resolve_conj: what it sees is not marked."""
    return _observe(torch.compile(_resolved))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
