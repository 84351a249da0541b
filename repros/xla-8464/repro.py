"""xla-8464: PyTorch/XLA runs a cached executable that gives away a buffer which this graph still needs.

t1 is updated in place, then the same sum is computed out of place. Both are one graph to the cache of torch_xla 2.5, and
the executable of the first donates the memory of t1. On the CPU runtime the process then dies.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"called on deleted or donated buffer"

ENV = {
    "control": {"PJRT_DEVICE": "CPU"},
    "baseline": {"PJRT_DEVICE": "CPU"},
    "no_aliasing": {"PJRT_DEVICE": "CPU", "XLA_ENABLE_PARAM_ALIASING": "0"},
    "out_of_place": {"PJRT_DEVICE": "CPU"},
    "distinct_graph": {"PJRT_DEVICE": "CPU"},
    "clone": {"PJRT_DEVICE": "CPU"},
}


class WrongResult(Exception):
    """The steps ran to their end, and the values are wrong."""


def _add(t1, t0):
    return t1 + t0


def _compare(t1, t2, **more):
    got = (t1.item(), t2.item())
    if got != (3, 4):
        raise WrongResult("expected t1, t2 = 3, 4, got {}, {}".format(*got))
    return {"t1": got[0], "t2": got[1], **more}


def _steps(update, combine):
    """Three steps: make t0 and t1, update t1, combine the two."""
    import torch_xla
    import torch_xla.core.xla_model as xm
    import torch_xla.debug.metrics as metrics

    device = xm.xla_device()
    t0, t1 = torch.tensor([1], device=device), torch.tensor([2], device=device)
    xm.mark_step()
    t1 = update(t1, t0)
    xm.mark_step()
    t2 = combine(t1, t0)
    xm.mark_step()
    compiled, reused = metrics.counter_value("UncachedCompile"), metrics.counter_value("CachedCompile") or 0
    print("torch_xla", torch_xla.__version__, "compiled", compiled, "graphs and reused", reused)
    return _compare(t1, t2, compiled=compiled, reused=reused)


def _in_place(t1, t0):
    return t1.add_(t0)


def control():
    """The same on torch's own CPU device."""
    t0, t1 = torch.tensor([1]), torch.tensor([2])
    t1.add_(t0)
    return _compare(t1, t1 + t0)


def baseline():
    return _steps(_in_place, _add)


def no_aliasing():
    """ENV turns buffer donation off."""
    return _steps(_in_place, _add)


def out_of_place():
    return _steps(_add, _add)


def distinct_graph():
    """The second expression hashes to another graph."""
    return _steps(_in_place, lambda t1, t0: (t1 + t0) * 1)


def clone():
    """Adds nothing to the graph, and so changes nothing."""
    return _steps(_in_place, lambda t1, t0: t1.clone() + t0)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
