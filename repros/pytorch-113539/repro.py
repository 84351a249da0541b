"""pytorch-113539: ndarray.resize() in a compiled function does nothing.

NumPy's `resize` method changes an array in place. Dynamo traces NumPy through its own arrays, and its `resize`
returned a new array and left the old one as it was.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import numpy as np
import torch

SIGNATURE = r"expected shape \([\d, ]+\), got \(\d+,\)"


class WrongResult(Exception):
    """The function returned without an error, and with another shape."""


def _resized():
    x = np.arange(6)
    x.resize(3, 2, 1)
    return x


def _observe(function):
    result = function()
    if result.shape != (3, 2, 1):
        raise WrongResult("expected shape (3, 2, 1), got {}".format(result.shape))
    numbers = torch.from_numpy(result).flatten().tolist()
    if numbers != list(range(6)):
        raise WrongResult("expected the numbers 0 to 5, got {}".format(numbers))
    return {"shape": str(result.shape), "type": type(result).__name__}


def _compile(function):
    return torch.compile(function, backend="eager", fullgraph=True)


def control():
    return _observe(_resized)


def baseline():
    return _observe(_compile(_resized))


def reshape():
    def function():
        x = np.arange(6)
        return x.reshape(3, 2, 1)

    return _observe(_compile(function))


def np_resize():
    """The function of the same name returns a new array."""

    def function():
        x = np.arange(6)
        return np.resize(x, (3, 2, 1))

    return _observe(_compile(function))


def assign_shape():
    def function():
        x = np.arange(6)
        x.shape = (3, 2, 1)
        return x

    return _observe(_compile(function))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
