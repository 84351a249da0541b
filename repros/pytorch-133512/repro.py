"""pytorch-133512: as_strided_copy after an in-place operation reads other elements once compiled.

The report's function: 1 is added in place to every second element of 0..9, and three of them are read by their strides.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected 1, 3 and 5, got \[1, 5, 9\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _read(x):
    return torch.as_strided_copy(x, (3,), (2,))


def _suspect(x):
    x.add_(1)
    return _read(x)


def _by_index(x):
    x.add_(1)
    return x[:3].clone()


def _observe(function):
    base = torch.arange(10)
    got = function(base[::2]).tolist()
    if got != [1, 3, 5]:
        raise WrongResult("expected 1, 3 and 5, got {}".format(got))
    return {"got": got, "base": base.tolist()}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, backend="aot_eager", fullgraph=True))


def by_index():
    """Elements are named by index, which does not depend on strides."""
    return _observe(torch.compile(_by_index, backend="aot_eager", fullgraph=True))


def mutated_outside():
    """The in-place operation comes before the compiled function; strides of an input are kept."""
    read = torch.compile(_read, backend="aot_eager", fullgraph=True)

    def _outside(x):
        x.add_(1)
        return read(x)

    return _observe(_outside)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
