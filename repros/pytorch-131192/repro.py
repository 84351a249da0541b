"""pytorch-131192: a custom operator that writes into a slice of a tensor gets a copy of it in compiled code.

A custom operator fills the two halves of a tensor in place, one after the other. The script measures the most memory that
is allocated while a call runs, the tensor itself not counted: there is nothing to allocate but a sum.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r""

NUMBERS = 1 << 24


@torch.library.custom_op("known_good_131192::fill", mutates_args={"out"})
def _fill(out: torch.Tensor, value: float) -> None:
    out.fill_(value)


@torch.library.register_fake("known_good_131192::fill")
def _(out, value):
    return None


@torch.library.custom_op("known_good_131192::fill_range", mutates_args={"out"})
def _fill_range(out: torch.Tensor, start: int, stop: int, value: float) -> None:
    out[start:stop].fill_(value)


@torch.library.register_fake("known_good_131192::fill_range")
def _(out, start, stop, value):
    return None


def _suspect(x):
    _fill(x[: NUMBERS // 2], 2.0)
    _fill(x[NUMBERS // 2 :], 3.0)
    return x.sum() + 1


def _of_the_whole(x):
    _fill_range(x, 0, NUMBERS // 2, 2.0)
    _fill_range(x, NUMBERS // 2, NUMBERS, 3.0)
    return x.sum() + 1


@torch._dynamo.disable
def _fill_halves(x):
    _fill(x[: NUMBERS // 2], 2.0)
    _fill(x[NUMBERS // 2 :], 3.0)


def _with_a_break(x):
    _fill_halves(x)
    return x.sum() + 1


def _peak(call):
    """What the call returns, and the most bytes that the CPU's allocator had handed out while it ran."""
    with torch.autograd.profiler.profile(profile_memory=True) as profile:
        result = call()
    held = peak = 0
    for event in profile.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return result, peak


def _observe(function):
    x = torch.ones(NUMBERS)
    function(x)  # compiles
    x.fill_(1.0)
    result, peak = _peak(lambda: function(x))
    return {"peak_bytes": peak, "first": x[0].item(), "last": x[-1].item(), "result": result.item()}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect))


def whole_tensor():
    """The operator is given the tensor and where to write."""
    return _observe(torch.compile(_of_the_whole))


def outside_the_graph():
    """The operator is called in a function that is not compiled."""
    return _observe(torch.compile(_with_a_break))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
