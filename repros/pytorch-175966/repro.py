"""pytorch-175966: an arange of int64 times a large number is computed in 32 bits by Inductor.

The numbers 0 to 10 times one thousand million. From the third on they need more than 31 bits.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected 10000000000 as the last of 11 products, got -?\d+; \d+ of 11 are wrong"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x):
    return torch.arange(11) * 1000000000 + x


def _from_argument(numbers, x):
    return numbers * 1000000000 + x


def _observe(function):
    result = function(torch.zeros(11, dtype=torch.int64))
    wrong = sum(number != 1000000000 * at for at, number in enumerate(result.tolist()))
    if wrong:
        raise WrongResult("expected 10000000000 as the last of 11 products, got {}; {} of 11 are wrong"
                          .format(result[-1].item(), wrong))
    return {"result": result.tolist(), "dtype": str(result.dtype)}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, fullgraph=True))


def from_argument():
    """The numbers are made outside of what is compiled."""
    compiled = torch.compile(_from_argument, fullgraph=True)
    return _observe(lambda x: compiled(torch.arange(11), x))


def no_propagation():
    """Inductor does not turn the arange into an index expression."""
    return _observe(torch.compile(_suspect, fullgraph=True, options={"constant_and_index_propagation": False}))


def aot_eager():
    """Without Inductor."""
    return _observe(torch.compile(_suspect, fullgraph=True, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
