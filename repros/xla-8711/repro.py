"""xla-8711: a buffer that the program has marked to be given away is not given away at a step.

t0 is needed no more after t0 + t1, and is marked so; t1 is updated in place. Both buffers may be used again for results
of the step. PyTorch/XLA counts how many inputs of the compiled graph are given away: there must be two.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected 2 input buffers to be given away in the step, got [01]\b"

ENV = {
    "control": {"PJRT_DEVICE": "CPU"},
    "baseline": {"PJRT_DEVICE": "CPU"},
    "in_place": {"PJRT_DEVICE": "CPU"},
    "copy_into": {"PJRT_DEVICE": "CPU"},
    "compiled": {"PJRT_DEVICE": "CPU"},
    "delete": {"PJRT_DEVICE": "CPU"},
}


class WrongResult(Exception):
    """The step ran, with fewer buffers given away than were marked, or with wrong numbers."""


def _add(t0, t1):
    return t0 + t1


def _values(combine, t0, t1):
    """t0 + t1 in whatever way, then t1 in place."""
    total = combine(t0, t1)
    t1 += 2
    return total, t1


def _compare(total, t1, **more):
    got = total.flatten().tolist(), t1.flatten().tolist()
    expected = [float(i + 1) for i in range(16)], [3.0] * 16
    if got != expected:
        raise WrongResult("expected the sum {} and t1 {}, got {} and {}".format(*expected, *got))
    return {"total": got[0], "t1": got[1], **more}


def _inputs(device):
    return torch.arange(16.0).view(4, 2, 2).to(device), torch.ones(4, 2, 2).to(device)


def _step(combine):
    """One step on the XLA device, with donation as the user marks it switched on, and a look at the counter."""
    import torch_xla
    import torch_xla.core.xla_model as xm
    import torch_xla.debug.metrics as metrics
    from torch_xla.core.dynamo_bridge import alias_with_buffer_donor_config

    with alias_with_buffer_donor_config():
        inputs = list(_inputs(xm.xla_device()))
        xm.mark_step()
        metrics.clear_all()
        total, t1 = combine(inputs)
        xm.mark_step()
    given = int((metrics.metric_data("InputOutputAliasCount") or (0, 0))[1])
    compiled = metrics.counter_value("UncachedCompile") or 0
    print("torch_xla", torch_xla.__version__, "gave away", given, "buffers")
    observed = _compare(total, t1, given=given)
    if given != 2:
        raise WrongResult("expected 2 input buffers to be given away in the step, got {}".format(given))
    print("compiled", compiled)
    return observed


def _mark(tensor):
    """The call is taken, in every release: what it marks is asked for again."""
    import torch_xla

    if not (torch_xla._XLAC._set_buffer_donation(tensor, True) and torch_xla._XLAC._get_buffer_donation(tensor)):
        raise WrongResult("expected the tensor to be marked, got no mark")


def _marked(inputs):
    t0, t1 = inputs
    _mark(t0)
    return _values(_add, t0, t1)


def control():
    """The same on torch's own CPU device."""
    return _compare(*_values(_add, *_inputs("cpu")))


def baseline():
    return _step(_marked)


def in_place():
    """An update in place is what the lazy tensors see by themselves."""
    return _step(lambda inputs: _values(lambda t0, t1: t0.add_(t1), *inputs))


def copy_into():
    """The sum is copied into the tensor that is no longer needed."""
    return _step(lambda inputs: _values(lambda t0, t1: t0.copy_(t0 + t1), *inputs))


def compiled():
    """The mark inside a function that Dynamo hands to the openxla backend, for which it was made."""
    import torch_xla.experimental.dynamo_set_buffer_donor

    def marked_sum(t0, t1):
        torch.ops.xla.dynamo_set_buffer_donor_(t0, True)
        return t0 + t1

    return _step(lambda inputs: _values(torch.compile(marked_sum, backend="openxla"), *inputs))


def delete():
    """No name holds t0 any more when the step comes; its buffer is a parameter of the graph all the same."""
    def forgotten(inputs):
        total = inputs[0] + inputs[1]
        del inputs[0]
        inputs[0] += 2
        return total, inputs[0]

    return _step(forgotten)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
