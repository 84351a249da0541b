"""pytorch-195402: an index out of bounds ends the process where Inductor's kernel runs on several threads.

Element 1 of a dimension of size 1 does not exist. Plain torch raises an IndexError; compiled, an exception has to come
too, and not SIGABRT.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"index out of bounds: 0 <= tmp\d+ < 1L|terminate called recursively"


class WrongResult(Exception):
    """Something was returned where an error was due."""


def _suspect(x, at):
    return (x - 0.5)[at]


def _observe(function, check=False):
    x = torch.zeros(1, 8, 66, 66)
    good = function(x, torch.tensor([[0]])).sum().item()  # a function that refuses everything has shown nothing
    at = torch.tensor([[1]])
    try:
        if check and not (at < x.shape[0]).all():
            raise IndexError("index out of bounds for a dimension of size {}".format(x.shape[0]))
        result = function(x, at)
    except (IndexError, RuntimeError) as refusal:  # its class depends on the release and the backend
        if "out of bounds" not in str(refusal):
            raise
        return {"good": good, "refused": True}
    raise WrongResult("expected an exception, got a tensor of shape {}".format(list(result.shape)))


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, fullgraph=True))


def checked():
    """The indices are checked before the compiled function is called."""
    return _observe(torch.compile(_suspect, fullgraph=True), check=True)


def one_thread():
    """A kernel of one thread raises an exception that can be caught."""
    return _observe(torch.compile(_suspect, fullgraph=True, options={"cpp.threads": 1}))


def aot_eager():
    """Without Inductor's kernels."""
    return _observe(torch.compile(_suspect, fullgraph=True, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
