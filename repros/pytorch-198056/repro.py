"""pytorch-198056: NumPy code compiled with torch.compile does not follow NumPy's result types.

A NumPy function of a small integer array is computed by NumPy and compiled; dtype, shape and values must agree.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import numpy as np
import torch

SIGNATURE = r"expected (int64|int8|bool|float64) [^x\n]* from NumPy, got"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


_INT8 = np.array([100, 100, 100], dtype=np.int8)
_CASES = {
    "cumsum": (lambda a: np.cumsum(a), _INT8),
    "square": (lambda a: np.square(a), np.array([2, 3], dtype=np.int8)),
    "any": (lambda a: np.any(a), np.array([0, 3], dtype=np.uint8)),
    "median": (lambda a: np.median(a), np.array([1.0, 2.0, 4.0])),
}


def _told(value):
    value = np.asarray(value)
    return "{} {}".format(value.dtype, value.tolist())


def _compare(expected, got):
    if _told(got) != _told(expected):
        raise WrongResult("expected {} from NumPy, got {}".format(_told(expected), _told(got)))
    return {"result": _told(got), "sum": torch.as_tensor(np.asarray(got)).double().sum().item()}


def _observe(case, how):
    function, values = _CASES[case]
    return _compare(function(values), how(function)(values))


def _eager_backend(function):
    return torch.compile(function, backend="eager")


def control(case="cumsum"):
    return _observe(case, lambda function: function)


def baseline(case="cumsum"):
    return _observe(case, _eager_backend)


def say_dtype(case="cumsum"):
    """The result type is written out."""
    return _compare(np.cumsum(_INT8), _eager_backend(lambda a: np.cumsum(a, dtype=np.int64))(_INT8))


def widen_first(case="cumsum"):
    """The array is int64 before the running sum starts."""
    return _compare(np.cumsum(_INT8), _eager_backend(lambda a: np.cumsum(a.astype(np.int64)))(_INT8))


def torch_cumsum(case="cumsum"):
    """torch's own function accumulates integers in int64."""
    compiled = _eager_backend(lambda a: torch.cumsum(a, dim=0))
    return _compare(np.cumsum(_INT8), compiled(torch.from_numpy(_INT8)).numpy())


def no_numpy_tracing(case="cumsum"):
    """Dynamo leaves NumPy to NumPy, and breaks the graph there."""
    import torch._dynamo

    torch._dynamo.config.trace_numpy = False
    double = _eager_backend(lambda x, a: (x * 2, np.cumsum(a)))
    twice, sums = double(torch.ones(2), _INT8)
    if twice.tolist() != [2.0, 2.0]:
        raise WrongResult("expected [2.0, 2.0], got {}".format(twice.tolist()))
    return _compare(np.cumsum(_INT8), sums)


def astype_after(case="cumsum"):
    """The result is widened, after the running sum has wrapped."""
    return _compare(np.cumsum(_INT8), _eager_backend(lambda a: np.cumsum(a).astype(np.int64))(_INT8))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
