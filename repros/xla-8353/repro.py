"""xla-8353: PyTorch/XLA takes two graphs that use their inputs in other places for one, and runs the first for both.

t0, t1 and t2 are transposed and combined: first (t0 * t1) + t2, then (t0 * t2) + t1, on new tensors. The second graph is
found in the cache by its hash, is not compiled, and returns what the first expression gives.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected \(t0 \* t2\) \+ t1 = \S+ at \(0, 0\), got (\S+), which is \(t0 \* t1\) \+ t2|the second graph returns t1\.T in the place of t2\.T"

ENV = {
    "control": {"PJRT_DEVICE": "CPU"},
    "baseline": {"PJRT_DEVICE": "CPU"},
    "other_form": {"PJRT_DEVICE": "CPU"},
    "compute_first": {"PJRT_DEVICE": "CPU"},
    "step_between": {"PJRT_DEVICE": "CPU"},
    "contiguous": {"PJRT_DEVICE": "CPU"},
    "no_aliasing": {"PJRT_DEVICE": "CPU", "XLA_ENABLE_PARAM_ALIASING": "0"},
}


class WrongResult(Exception):
    """Both graphs ran, and one gave the result of the other."""


def _first(t0, t1, t2):
    return t0.T, t1.T, t2.T, (t0 * t1) + t2


def _second(t0, t1, t2):
    return t0.T, t1.T, t2.T, (t0 * t2) + t1


def _inputs():
    torch.manual_seed(1024)
    return [torch.randn(12, 12) for _ in range(3)]


def _compare(run, first, second, more=dict):
    """Run one after the other, and hold all outputs against plain torch in double precision."""
    given = _inputs()
    t0, t1, t2 = [tensor.double() for tensor in given]
    is_first, is_second = (t0 * t1) + t2, (t0 * t2) + t1
    *transposed_first, got_first = [output.double() for output in run(first, given)]
    *transposed_second, got_second = [output.double() for output in run(second, given)]
    if not torch.allclose(got_first, is_first, atol=1e-4):
        raise WrongResult("the first graph: expected {:.6f} at (0, 0), got {:.6f}, tolerance 1e-4".format(
            is_first[0, 0].item(), got_first[0, 0].item()))
    if not torch.allclose(got_second, is_second, atol=1e-4):
        same = "which is (t0 * t1) + t2" if torch.allclose(got_second, is_first, atol=1e-4) else "which is neither"
        raise WrongResult("expected (t0 * t2) + t1 = {:.6f} at (0, 0), got {:.6f}, {}".format(
            is_second[0, 0].item(), got_second[0, 0].item(), same))
    if torch.equal(transposed_second[2], t1.T):
        raise WrongResult("the second graph returns t1.T in the place of t2.T")
    for which, transposed in (("first", transposed_first), ("second", transposed_second)):
        if not all(map(torch.equal, transposed, (t0.T, t1.T, t2.T))):
            raise WrongResult("the {} graph returns other transposes".format(which))
    return {"first": got_first[0].tolist(), "second": got_second[0].tolist(), **more()}


def _counts():
    import torch_xla
    import torch_xla.debug.metrics as metrics

    counts = {"compiled": metrics.counter_value("UncachedCompile") or 0, "reused": metrics.counter_value("CachedCompile") or 0}
    print("torch_xla", torch_xla.__version__, counts)
    return counts


def _on_xla(function, given):
    import torch_xla.core.xla_model as xm

    results = function(*[tensor.to(xm.xla_device()) for tensor in given])
    xm.mark_step()
    return [result.cpu() for result in results]


def control():
    """The same on torch's own CPU device."""
    return _compare(lambda function, given: function(*given), _first, _second)


def baseline():
    return _compare(_on_xla, _first, _second, _counts)


def no_aliasing():
    """ENV turns buffer donation off, which has no part in it."""
    return _compare(_on_xla, _first, _second, _counts)


def other_form():
    """The second sum with its operands exchanged: another graph."""
    return _compare(_on_xla, _first, lambda t0, t1, t2: (t0.T, t1.T, t2.T, t1 + (t0 * t2)), _counts)


def compute_first():
    """The expression before the transposes: its order of the parameters is then the order of the graph."""
    def put(expression):
        def ordered(t0, t1, t2):
            value = expression(t0, t1, t2)
            return t0.T, t1.T, t2.T, value

        return ordered

    return _compare(_on_xla, put(lambda t0, t1, t2: (t0 * t1) + t2), put(lambda t0, t1, t2: (t0 * t2) + t1), _counts)


def step_between():
    """A step after the transposes: the expression is a graph of its own."""
    def put(expression):
        def stepped(t0, t1, t2):
            import torch_xla.core.xla_model as xm

            transposed = t0.T, t1.T, t2.T
            xm.mark_step()
            return (*transposed, expression(t0, t1, t2))

        return stepped

    return _compare(_on_xla, put(lambda t0, t1, t2: (t0 * t1) + t2), put(lambda t0, t1, t2: (t0 * t2) + t1), _counts)


def contiguous():
    """Copies of the transposes: the same two graphs, each with the same hash again."""
    def put(expression):
        def copied(t0, t1, t2):
            return t0.T.contiguous(), t1.T.contiguous(), t2.T.contiguous(), expression(t0, t1, t2)

        return copied

    return _compare(_on_xla, put(lambda t0, t1, t2: (t0 * t1) + t2), put(lambda t0, t1, t2: (t0 * t2) + t1), _counts)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
