"""pytorch-104505: an in-place write through as_strided on top of another view cannot be compiled.

as_strided speaks of the storage, whatever view it is called on. The script adds 1 to the first two elements of a matrix
through `a.diagonal().as_strided((2,), (1,), 0)` and compares the matrix with what must come out.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = (r"a mutation on a view chain of length \d+, where view \d+ was an as_strided\(\) call"
             r"|expected the matrix [^gx\n]*, got [^x\n]* \(tolerance 0\)")


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _through_two_views(a):
    a.diagonal().as_strided((2,), (1,), 0).add_(1.0)
    return a


def _through_one(a):
    a.as_strided((2,), (1,), 0).add_(1.0)
    return a


def _through_ordinary_views(a):
    a.view(-1)[:2].add_(1.0)
    return a


def _observe(function):
    a = torch.arange(8.0).reshape(2, 4)
    expected = torch.tensor([[1.0, 2.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]])
    result = function(a)
    for got in (result, a):
        if not torch.equal(got, expected):
            raise WrongResult("expected the matrix {}, got {} (tolerance 0)".format(expected.tolist(), got.tolist()))
    return {"result": result.tolist(), "argument": a.tolist()}


def control():
    return _observe(_through_two_views)


def baseline():
    return _observe(torch.compile(_through_two_views, backend="aot_eager"))


def as_strided_on_base():
    """The same as_strided, called on the tensor that owns the layout."""
    return _observe(torch.compile(_through_one, backend="aot_eager"))


def ordinary_views():
    return _observe(torch.compile(_through_ordinary_views, backend="aot_eager"))


def inductor_backend():
    return _observe(torch.compile(_through_two_views))


def eager_backend():
    """Dynamo alone: nothing is functionalised."""
    return _observe(torch.compile(_through_two_views, backend="eager"))


def graph_break():
    """A graph break between the views and the write, as the error itself advises."""

    def function(a):
        view = a.diagonal().as_strided((2,), (1,), 0)
        torch._dynamo.graph_break()
        view.add_(1.0)
        return a

    return _observe(torch.compile(function, backend="aot_eager"))


def disabled():
    """The write stays out of the graph; the multiplication by 1 after it is compiled."""
    write = torch._dynamo.disable(_through_two_views)

    def function(a):
        return write(a) * 1.0

    return _observe(torch.compile(function, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
