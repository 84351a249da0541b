"""pytorch-183767: vectorized asinh of large float32 numbers returns inf.

asinh(3e22) is 52.45 in eager.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected asinh\(3e\+22\) = 52\.\d+, got inf"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


_VALUES, _RIGHT = [3e22, 7e25, -8e23, 1e10], [52.44863151509706, 60.2036846544664, -55.73204586110283, 23.7189981105004]


def _suspect(x):
    return torch.asinh(x)


def _by_parts(x):
    large = x.abs() > 1e8
    size = torch.where(large, x.abs(), 1.0)
    return torch.where(large, (torch.log(size) + 0.6931471805599453) * torch.sign(x), torch.asinh(torch.where(large, 0.0, x)))


def _observe(function):
    x = torch.tensor(_VALUES * 16, dtype=torch.float32)
    got = function(x).tolist()[:len(_VALUES)]
    for value, right, found in zip(_VALUES, _RIGHT, got):
        if not abs(found - right) <= 1e-4 * abs(right):
            raise WrongResult("expected asinh({}) = {}, got {} (relative tolerance 1e-4)".format(value, right, found))
    return {"got": got}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect))


def by_parts():
    return _observe(torch.compile(_by_parts))


def disabled():
    """A graph break around it."""
    function = torch.compiler.disable(torch.asinh)
    return _observe(torch.compile(lambda x: function(x) + 0 * x))


def scalar_code():
    """No vector code: the function of the C library is called for each element."""
    import torch._inductor.config as settings

    with settings.patch({"cpp.simdlen": 1}):
        return _observe(torch.compile(_suspect))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
