"""pytorch-174459: a compiled sort orders equal elements otherwise than eager mode does.

Small integer tensors with many ties are sorted in descending order, compiled and not; first the values have to agree,
then the indices. The tensors are doubled before, so that Inductor has a kernel to write even where it leaves the sort
to eager mode.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected the order of ties of eager mode, got another one in \d+ of \d+ tensors"

TENSORS, BATCH = 8, 8


class WrongResult(Exception):
    """The sort ran, and not as in eager mode."""


def _sort(stable):
    return lambda x: torch.ops.aten.sort(x * 2, stable=stable, dim=-1, descending=True)


def _sort_unique(x):
    twice = x * 2
    n = x.shape[-1]
    key = twice * n + torch.arange(n - 1, -1, -1, device=x.device)
    indices = torch.sort(key, dim=-1, descending=True).indices
    return twice.gather(-1, indices), indices


def _observe(function, how, length):
    other = 0
    made = how(function)
    for seed in range(TENSORS):
        torch.manual_seed(seed)
        x = torch.randint(1, 3, (BATCH, length), device="cuda")
        values, indices = function(x)
        got_values, got_indices = made(x)
        if not (torch.equal(got_values, values) and torch.equal((x * 2).gather(-1, got_indices), values)):
            raise WrongResult("expected the sorted values, got other ones, tolerance 0")
        other += not torch.equal(got_indices, indices)
    if other:
        raise WrongResult(
            "expected the order of ties of eager mode, got another one in {} of {} tensors, tolerance 0; the last: "
            "{} and {}".format(other, TENSORS, indices[0].tolist(), got_indices[0].tolist())
        )
    return {"tensors": TENSORS, "length": length, "gpu": torch.cuda.get_device_name()}


def control(length=3):
    """Eager mode beside itself."""
    return _observe(_sort(None), lambda function: function, length)


def baseline(length=3):
    return _observe(_sort(None), torch.compile, length)


def stable_true(length=3):
    """A stable sort has one answer only."""
    return _observe(_sort(True), torch.compile, length)


def stable_false(length=3):
    """What None stands for."""
    return _observe(_sort(False), torch.compile, length)


def unique_keys(length=3):
    """No ties, and so no order of ties."""
    return _observe(_sort_unique, torch.compile, length)


def aot_eager(length=3):
    """Eager mode's own kernel."""
    return _observe(_sort(None), lambda function: torch.compile(function, backend="aot_eager"), length)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
